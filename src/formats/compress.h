// gzip, deflate and zstd with bounded output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace millrace {

using ByteVector = std::vector<std::byte>;
using ByteSpan = std::span<const std::byte>;

enum class Deflate : uint8_t { Gzip, Raw };

/// The compressed bytes. The same input gives the same output.
ByteVector gzip(ByteSpan bytes);
ByteVector zstd(ByteSpan bytes);

/// At most the first `most_bytes` of what `bytes` holds, compressed. `what` opens the message.
/// Error: ErrorCode::Dataset naming the byte at which the stream is damaged.
Result<ByteVector> inflate_at_most(ByteSpan bytes, Deflate kind, uint64_t most_bytes,
                                   const std::string& what);
/// Exactly `n_bytes`. Error: ErrorCode::Dataset, if there are more or fewer too.
Result<ByteVector> inflate_exactly(ByteSpan bytes, Deflate kind, uint64_t n_bytes,
                                   const std::string& what);
Result<ByteVector> unzstd_exactly(ByteSpan bytes, uint64_t n_bytes, const std::string& what);

/// CRC-32 as gzip and zip have it.
uint32_t crc32_of(ByteSpan bytes);

}  // namespace millrace
