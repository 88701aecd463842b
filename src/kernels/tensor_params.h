// Parameter blocks of the tensor facade's kernels: plain data, the same bytes on every device.
#pragma once

#include <cstdint>

namespace millrace {}  // namespace millrace
