// PNG in memory: 8- and 16-bit RGB out, 16-bit RGB in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace millrace {

/// Encodes `samples` [height, width, channels] of 8-bit (channels 3 or 4). Error:
/// ErrorCode::Internal with libpng's words.
Result<std::vector<std::byte>> encode_png8(uint32_t width, uint32_t height, uint32_t channels,
                                           std::span<const uint8_t> samples);
/// Encodes `samples` [height, width, 3] of 16 bits. Errors: as encode_png8.
Result<std::vector<std::byte>> encode_png16(uint32_t width, uint32_t height,
                                            std::span<const uint16_t> samples);

/// Whether `bytes` begins as a PNG with 16 bits per channel.
bool is_png16(std::span<const std::byte> bytes);

/// Pixels of a 16-bit PNG: [height, width, 4], gray expanded to RGB, alpha 65535 where there is
/// none.
struct Image16 {
  uint32_t width = 0, height = 0;
  std::vector<uint16_t> pixels;
};

/// Decodes a PNG for which is_png16 holds; `file` is for messages. No gamma is applied.
/// Error: ErrorCode::Dataset naming the file and what libpng found, or a size the file cannot hold.
Result<Image16> decode_png16(std::span<const std::byte> bytes, const std::string& file);

}  // namespace millrace
