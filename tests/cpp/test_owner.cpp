#include "dlbridge/owner.h"

#include <gtest/gtest.h>

#include <thread>
#include <type_traits>
#include <utility>

#include "dlbridge/tensor.h"

namespace dlbridge {
namespace {

static_assert(!std::is_copy_constructible_v<Owner> && !std::is_copy_assignable_v<Owner>);
static_assert(std::is_nothrow_move_constructible_v<Owner> && std::is_nothrow_move_assignable_v<Owner>);
static_assert(!std::is_copy_constructible_v<Tensor> && !std::is_copy_assignable_v<Tensor>);
static_assert(std::is_nothrow_move_constructible_v<Tensor> && std::is_nothrow_move_assignable_v<Tensor>);

void count(void* context) noexcept { ++*static_cast<int*>(context); }

TEST(Owner, ReleasesOnceAtTheEndOfItsScope) {
  int released = 0;
  {
    Owner owner(&released, count);
    EXPECT_TRUE(owner);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(Owner, AMovedFromOwnerReleasesNothing) {
  int released = 0;
  {
    Owner first(&released, count);
    Owner second(std::move(first));
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): the moved-from state is what is tested
    EXPECT_EQ(first.context(), nullptr);
    EXPECT_EQ(second.context(), &released);
  }
  EXPECT_EQ(released, 1);
}

TEST(Owner, AssignmentReleasesWhatWasHeldAndOnlyThat) {
  int old_released = 0;
  int new_released = 0;
  Owner target(&old_released, count);
  Owner source(&new_released, count);
  target = std::move(source);
  EXPECT_EQ(old_released, 1);
  EXPECT_EQ(new_released, 0);
  target.reset();
  EXPECT_EQ(new_released, 1);
  target.reset();
  EXPECT_EQ(new_released, 1) << "a second reset must find nothing";
}

TEST(Owner, SelfAssignmentKeepsTheOwner) {
  int released = 0;
  Owner owner(&released, count);
  Owner& same = owner;
  owner = std::move(same);
  EXPECT_TRUE(owner);
  EXPECT_EQ(released, 0);
}

TEST(Owner, AReleaseThatLooksBackSeesAnEmptyOwner) {
  struct Context {
    Owner owner;
    int calls = 0;
  } context;
  context.owner = Owner(&context, [](void* c) noexcept {
    auto* self = static_cast<Context*>(c);
    ++self->calls;
    self->owner.reset();  // re-entered: must not run twice
  });
  context.owner.reset();
  EXPECT_EQ(context.calls, 1);
}

// The last owner may die on any thread.
TEST(Owner, Fault28ReleasesOnTheThreadThatDestroysIt) {
  int released = 0;
  std::thread([owner = Owner(&released, count)]() mutable { owner.reset(); }).join();
  EXPECT_EQ(released, 1);
}

TEST(Owner, TheEmptyOwnerIsFalseAndHarmless) {
  Owner owner;
  EXPECT_FALSE(owner);
  owner.reset();
}

Tensor make_tensor(std::int32_t ndim, int* released) {
  Tensor t;
  t.reserve_dims(ndim);
  for (std::int32_t i = 0; i < ndim; ++i) {
    t.dl.shape[i] = i + 1;
    t.dl.strides[i] = -i;
  }
  t.owner = Owner(released, count);
  t.flags = kFlagReadOnly;
  t.ready = Ordering::on_stream(kPerThreadStream);
  return t;
}

// Up to kInlineDims extents lie inside the object, so a move must point at the new ones; more lie on the heap.
class TensorMove : public testing::TestWithParam<std::int32_t> {};

TEST_P(TensorMove, KeepsDimsFlagsAndOwnerAndPointsIntoTheNewObject) {
  const std::int32_t ndim = GetParam();
  int released = 0;
  {
    Tensor first = make_tensor(ndim, &released);
    Tensor second(std::move(first));
    Tensor third;
    third = std::move(second);
    ASSERT_EQ(third.dl.ndim, ndim);
    for (std::int32_t i = 0; i < ndim; ++i) {
      EXPECT_EQ(third.dl.shape[i], i + 1);
      EXPECT_EQ(third.dl.strides[i], -i);
    }
    const auto* low = reinterpret_cast<const char*>(&third);
    const auto* shape = reinterpret_cast<const char*>(third.dl.shape);
    EXPECT_EQ(shape >= low && shape < low + sizeof(Tensor), ndim <= kInlineDims);
    EXPECT_TRUE(third.readonly());
    EXPECT_EQ(third.ready, Ordering::on_stream(kPerThreadStream));
    EXPECT_EQ(second.dl.ndim, 0);  // NOLINT(bugprone-use-after-move): the moved-from state is what is tested
    EXPECT_NE(second.dl.shape, third.dl.shape);
    EXPECT_FALSE(second.owner);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}
INSTANTIATE_TEST_SUITE_P(Ndim, TensorMove,
                         testing::Values(0, 1, kInlineDims - 1, kInlineDims, kInlineDims + 1, kMaxDims),
                         testing::PrintToStringParamName());

TEST(TensorMoveAssign, ReleasesTheTargetsOldOwnerAndGoesFromHeapToInline) {
  int old_released = 0;
  int new_released = 0;
  Tensor target = make_tensor(kInlineDims + 2, &old_released);
  target = make_tensor(2, &new_released);
  EXPECT_EQ(old_released, 1);
  EXPECT_EQ(new_released, 0);
  EXPECT_EQ(target.dl.ndim, 2);
  EXPECT_EQ(target.dl.shape[1], 2);
}

}  // namespace
}  // namespace dlbridge
