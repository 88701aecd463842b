// Parameter blocks and device records of the splatting, loss and training kernels.
#pragma once

#include <cstdint>

namespace millrace {}  // namespace millrace
