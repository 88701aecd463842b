// The body of a PLY file: rows of one element as numbers, whatever their type and encoding.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "io/ply_header.h"

namespace millrace {

/// Says that `bytes` is too short for the rows that `header` declares, before anything is allocated
/// for them. Lists and ascii numbers count with their least size. Error: ErrorCode::Dataset.
Result<void> check_ply_body_size(std::span<const std::byte> bytes, const PlyHeader& header,
                                 const std::string& file);

/// Calls `take(row, values)` for each row of `element`, in order; `values` has one number per
/// property (0 for lists) and is valid during the call. Elements before it are skipped, those after
/// it not read. Errors: ErrorCode::Dataset naming the byte (binary) or the line (ascii) at which
/// the body ends or cannot be read.
Result<void> read_ply_rows(
    std::span<const std::byte> bytes, const PlyHeader& header, const PlyElement& element,
    const std::string& file,
    const std::function<void(uint64_t row, std::span<const double> values)>& take);

}  // namespace millrace
