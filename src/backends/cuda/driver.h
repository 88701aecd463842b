// Driver: the vendor's driver library, opened at run time, as a table of functions.
#pragma once

#include <string>

#include "backends/cuda/driver_types.h"
#include "base/result.h"

namespace millrace::cuda {

/// The functions of one driver library. Never closed: drivers keep threads of their own.
class Driver {
 public:
  /// The driver that MILLRACE_CUDA_LIBRARY names, or the system's, opened and initialised once per
  /// program. Error: Usage, saying what is missing.
  static Result<const Driver*> open();

  /// An error for `status` of a call that was to `what`; OutOfMemory and DeviceLost where the
  /// status says so, else Internal.
  Error error(Status status, const std::string& what) const;
  Result<void> check(Status status, const char* what) const {
    if (status == Status::Ok) return {};
    return error(status, what);
  }
  /// "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered".
  std::string text(Status status) const;

#define MILLRACE_CUDA_FUNCTION(member, symbol, ...) Status (*member)(__VA_ARGS__) = nullptr;
#define MILLRACE_CUDA_OPTIONAL(member, symbol, ...) Status (*member)(__VA_ARGS__) = nullptr;
#include "backends/cuda/driver_functions.inc"
#undef MILLRACE_CUDA_FUNCTION
#undef MILLRACE_CUDA_OPTIONAL

 private:
  static Result<Driver> load(const std::string& library);
};

/// True for a status after which the context answers every call with an error: the device is lost
/// to this process.
bool is_sticky(Status status);

}  // namespace millrace::cuda
