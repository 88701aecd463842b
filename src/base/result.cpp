// The one place that throws.
#include "base/result.h"

namespace millrace {

void raise(Error error) { throw Exception(std::move(error)); }

}  // namespace millrace
