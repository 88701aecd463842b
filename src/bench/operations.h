// Floating-point operations of a training step, by the scalar reference (CONTRACTS.md), for floors.
#pragma once

namespace millrace {

/// Of one blended (Gaussian, pixel) pair, with the reference's own exp:
///   to alpha    dx, dy 2, y1 3, y2 1, power 4, negation 1, exp 24, opacity 1, least 1, tests 2: 39
///   forward     weight 1, three colours 6, transmittance 1: 8
///   backward    1 - alpha 1, quotient 1, weight 1, colour gradient 5, three colours 6, weight sum
///               1, dalpha 2, opacity 2, h 2, moments 10, colour behind 3: 34
constexpr double kAlphaOperations = 39, kForwardOperations = 8, kBackwardOperations = 34;
constexpr double kBlendForwardOperations = kAlphaOperations + kForwardOperations;
constexpr double kBlendBackwardOperations = kAlphaOperations + kBackwardOperations;

/// Counted in the sources of src/kernels/isa/.
constexpr double kProjectOperations = 260, kShOperations = 140;      // a row; a row's 45 + 3 terms
constexpr double kLossForwardOperations = 5 * 2 * 21 + 5 + 45;       // a pixel and channel
constexpr double kLossBackwardOperations = 3 * 2 * 21 + 10;          // a pixel and channel
constexpr double kRowBackwardOperations = 260 + 420 + 3 * (45 * 2);  // a visible row
constexpr double kAdamOperations = 14;                               // a parameter

}  // namespace millrace
