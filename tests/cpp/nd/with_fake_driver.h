// The fixture of the runtime's tests.
#pragma once

#include "tests/cpp/fake_driver.h"

namespace dlbridge::test {

// A test that needs the fake, with an empty log and device 0 selected.
class WithFakeDriver : public testing::Test {
 protected:
  void SetUp() override {
    if (!fake) GTEST_SKIP() << "the fake libcuda.so.1 is not on the library path";
    fake.reset();
    fake.select_device(0);
  }
  const FakeDriver& fake = FakeDriver::get();
};

}  // namespace dlbridge::test
