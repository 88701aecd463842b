// Readers against files that are cut off or hold other bytes: an error that names the file, or a
// model of finite values, and never more.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/philox.h"
#include "formats/model_file.h"

namespace millrace {

inline void expect_sane(const Result<GaussianCloud>& read, const std::filesystem::path& path) {
  if (!read.ok()) {
    EXPECT_EQ(read.error().code, ErrorCode::Dataset) << read.error().message;
    EXPECT_NE(read.error().message.find(path.filename().string()), std::string::npos)
        << read.error().message;
    return;
  }
  for (const float value : read.value().means) ASSERT_TRUE(std::isfinite(value));
  ASSERT_EQ(read.value().rotations.size(), 4 * read.value().count());
}

/// `path` holds a sound file. Every cut must be an error if `every_cut_is_seen`.
inline void expect_broken_files_are_seen(const std::filesystem::path& path,
                                         bool every_cut_is_seen = true) {
  const std::vector<std::byte> sound = read_file(path).or_raise();
  std::filesystem::path broken = path;
  broken.replace_filename("broken-" + path.filename().string());
  for (size_t part = 0; part < 40; ++part) {
    const size_t n = part < 20 ? std::min(sound.size() - 1, 3 * part)
                               : sound.size() * (part - 20) / 20 + (part == 39 ? 0 : 1);
    ASSERT_TRUE(write_file_atomically(broken, std::span(sound).first(n)).ok());
    const Result<GaussianCloud> read = read_model(broken);
    EXPECT_TRUE(!read.ok() || !every_cut_is_seen) << "cut after " << n << " bytes";
    expect_sane(read, broken);
  }
  for (uint32_t i = 0; i < 200; ++i) {
    std::vector<std::byte> garbled = sound;
    for (uint32_t flip = 0; flip < 3; ++flip) {
      const auto words = philox(3, i, RandomPurpose::Synthetic, flip);
      // Half of them near the beginning, where headers are.
      const size_t within = i % 2 ? garbled.size() : std::min<size_t>(garbled.size(), 200);
      garbled[words[0] % within] = static_cast<std::byte>(words[1] & 255);
    }
    ASSERT_TRUE(write_file_atomically(broken, garbled).ok());
    expect_sane(read_model(broken), broken);
  }
}

}  // namespace millrace
