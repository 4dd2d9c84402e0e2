// Image filters on float32 pictures of height x width x channels, from NumPy, PyTorch, JAX or anybody else.
#include <dlbridge/empty.h>
#include <dlbridge/pybind11.h>

#include <algorithm>
#include <cstdint>

namespace py = pybind11;
using dlbridge::dyn;

// Any strides: crops, flips and transposed pictures come as they are. const: read-only pictures (JAX's) are welcome.
using Picture = dlbridge::Arg<const float, dlbridge::shape<dyn, dyn, dyn>>;
// What is written to must be dense here, and writable.
using Canvas = dlbridge::Arg<float, dlbridge::shape<dyn, dyn, dyn>, dlbridge::c_contig>;

using PictureView = dlbridge::TensorView<const float, 3>;
using CanvasView = dlbridge::TensorView<float, 3, dlbridge::c_contig>;

namespace {

// The mean over a window of (2 * radius + 1)^2 pixels, cut off at the border.
void box_blur(const PictureView& in, const CanvasView& out, std::int64_t radius) {
  const std::int64_t height = in.extent(0), width = in.extent(1), channels = in.extent(2);
  for (std::int64_t y = 0; y < height; ++y) {
    const std::int64_t top = std::max<std::int64_t>(y - radius, 0), bottom = std::min(y + radius, height - 1);
    for (std::int64_t x = 0; x < width; ++x) {
      const std::int64_t left = std::max<std::int64_t>(x - radius, 0), right = std::min(x + radius, width - 1);
      const auto count = static_cast<float>((bottom - top + 1) * (right - left + 1));
      for (std::int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (std::int64_t v = top; v <= bottom; ++v)
          for (std::int64_t u = left; u <= right; ++u) sum += in(v, u, c);
        out(y, x, c) = sum / count;
      }
    }
  }
}

std::int64_t checked_radius(std::int64_t radius) {
  if (radius < 0) throw py::value_error("blur(): radius is " + std::to_string(radius) + "; it must not be negative");
  return radius;
}

// A new picture, as a dlbridge.Tensor: numpy.asarray(), torch.from_dlpack(), jax.numpy.from_dlpack() all take it.
dlbridge::Tensor blur(Picture picture, std::int64_t radius) {
  dlbridge::Tensor out = dlbridge::empty<float>(picture.view().extents());
  box_blur(picture.view(), out.view<float, 3, dlbridge::c_contig>(), checked_radius(radius));
  return out;
}

// The same into memory of the caller's.
void blur_into(Picture picture, Canvas out, std::int64_t radius) {
  const auto in = picture.view();
  const auto canvas = out.view();
  if (!std::ranges::equal(in.extents(), canvas.extents()))
    throw py::value_error("blur_into(): picture and out differ in shape");
  box_blur(in, canvas, checked_radius(radius));
}

// In place.
void scale(Canvas picture, float factor) {
  for (float& value : picture.view()) value *= factor;
}

}  // namespace

PYBIND11_MODULE(pixelkit, m) {
  dlbridge::connect();
  // The GIL is let go while a picture is worked on; arguments and results know how to live with that.
  const auto without_gil = py::call_guard<py::gil_scoped_release>();

  dlbridge::def(m, "blur", &blur, py::arg("picture"), py::arg("radius") = 1, without_gil,
                "The box blur of a picture, as a new dlbridge.Tensor.");
  dlbridge::def(m, "blur_into", &blur_into, py::arg("picture"), py::arg("out"), py::arg("radius") = 1, without_gil,
                "The box blur of a picture, into another.");
  dlbridge::def(m, "scale", &scale, py::arg("picture"), py::arg("factor"), without_gil,
                "Multiplies a picture in place.");
  // A result can come as an array of one framework, too.
  dlbridge::def(
      m, "blur_numpy",
      [](Picture picture, std::int64_t radius) { return dlbridge::as<"numpy">(blur(std::move(picture), radius)); },
      py::arg("picture"), py::arg("radius") = 1, without_gil, "The box blur of a picture, as a NumPy array.");
}
