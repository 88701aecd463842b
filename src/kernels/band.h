// Which band a pass over part of a frame works on.
#pragma once

#include "kernels/splat_params.h"

namespace millrace::kernels {

/// The band of this pass; only where params.n_bands > 1.
inline const Band& band_of(const FrameParams& params, const BandTable& table) {
  const Band& band = table.bands[params.band];
  return params.backward ? table.bands[band.mirror] : band;
}

}  // namespace millrace::kernels
