// What the CPU kernels of the MRNF strategy and their tests share.
#pragma once

#include <cstdint>

namespace millrace::kernels {

/// Keys of a draw: bits of a number above zero, at most kLastDraw; kNoDraw for rows of no weight.
constexpr uint32_t kNoDraw = 0xFFFFFFFF;
constexpr uint32_t kLastDraw = 0x7F800000;
/// Noise below this part of the scene's median size is none.
constexpr float kMrnfLeastNoise = 1e-12f;

}  // namespace millrace::kernels
