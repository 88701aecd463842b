// EXIF: how long, how wide open and how sensitive a camera was, as a photograph's file says.
#pragma once

#include <filesystem>
#include <optional>
#include <span>

namespace millrace {

/// Exposure of a JPEG or TIFF file in stops: log2(t ISO / (100 N^2)), t in seconds, N the f-number
/// (one more stop, twice the light in the file). None if a figure is missing or makes no sense;
/// damaged files have none, never an error.
std::optional<double> exposure_value(std::span<const std::byte> file);
/// The same of a file, of which it reads the first 256 KiB.
std::optional<double> read_exposure_value(const std::filesystem::path& path);

}  // namespace millrace
