// What a model must hold before it is written, and after it was read.
#pragma once

#include <filesystem>
#include <string>

#include "base/gaussian_cloud.h"
#include "base/result.h"

namespace millrace {

/// SH degree 0 to 3, every array as long as the rows need, every value finite. Error:
/// ErrorCode::Internal naming the file and the first rows that are not.
Result<void> check_writable(const GaussianCloud& cloud, const std::filesystem::path& path);

/// Every value is finite. Error: ErrorCode::Dataset naming the file, the row and the array.
Result<void> check_finite_rows(const GaussianCloud& cloud, const std::string& file);

}  // namespace millrace
