// SOG version 2: positions as 16-bit logarithms, scales and colours by codebooks, higher harmonics
// by a palette.
#include "formats/sog.h"

#include <fmt/format.h>
#include <webp/encode.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "data/image_codec.h"
#include "formats/palette.h"
#include "formats/quantize.h"
#include "formats/space_order.h"
#include "io/cloud_check.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint32_t kVersion = 2;
constexpr uint32_t kCentroidsPerRow = 64;
constexpr uint8_t kLargestOffset = 252;  // alpha of a rotation: this and the largest one's index
constexpr uint64_t kMostRows = 1ull << 28;

// ---- writing ----

double log_position(double v) { return std::copysign(std::log1p(std::abs(v)), v); }
double position_of_log(double n) { return std::copysign(std::expm1(std::abs(n)), n); }

Image8 blank_image(uint32_t width, uint32_t height) {
  return {width, height, 4, std::vector<uint8_t>(size_t{4} * width * height)};
}
// A pixel for each Gaussian: a width that is a multiple of four, nearly square.
Image8 image_for(uint64_t n_rows) {
  const auto side = static_cast<uint32_t>(std::ceil(std::sqrt(static_cast<double>(n_rows)) / 4));
  const uint32_t width = 4 * std::max(1u, side);
  const auto height = static_cast<uint32_t>((n_rows + width - 1) / width);
  Image8 image = blank_image(width, height);
  for (size_t i = 3; i < image.pixels.size(); i += 4) image.pixels[i] = 255;
  return image;
}

// Every byte as it is, those under a transparent pixel too.
Result<ByteVector> encode_webp(const Image8& image) {
  WebPConfig config;
  WebPPicture picture;
  if (!WebPConfigInit(&config) || !WebPPictureInit(&picture)) {
    return Error{ErrorCode::Internal, "libwebp has another version than its headers"};
  }
  WebPConfigLosslessPreset(&config, 5);
  config.exact = 1;
  picture.use_argb = 1;
  picture.width = static_cast<int>(image.width);
  picture.height = static_cast<int>(image.height);
  WebPMemoryWriter memory;
  WebPMemoryWriterInit(&memory);
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &memory;
  const bool done =
      WebPPictureImportRGBA(&picture, image.pixels.data(), static_cast<int>(4 * image.width)) &&
      WebPEncode(&config, &picture);
  ByteVector out;
  const auto* bytes = reinterpret_cast<const std::byte*>(memory.mem);
  if (done) out.assign(bytes, bytes + memory.size);
  WebPPictureFree(&picture);
  WebPMemoryWriterClear(&memory);
  if (done) return out;
  return Error{ErrorCode::Internal,
               fmt::format("a WebP image of {}x{} cannot be encoded", image.width, image.height)};
}

class SogWriter {
 public:
  explicit SogWriter(const GaussianCloud& cloud) : cloud_(cloud), n_(cloud.count()) {}

  Result<std::vector<ZipEntry>> entries() {
    meta_["version"] = kVersion;
    meta_["asset"] = {{"generator", "Millrace"}};
    meta_["count"] = n_;
    meta_["antialias"] = false;
    MILLRACE_TRY(add_means());
    MILLRACE_TRY(add_by_codebook("scales", cloud_.log_scales, nullptr));
    MILLRACE_TRY(add_rotations());
    MILLRACE_TRY(add_by_codebook("sh0", cloud_.sh0, &cloud_.opacities));
    if (cloud_.sh_degree > 0) MILLRACE_TRY(add_palette());
    const std::string text = meta_.dump();
    const auto bytes = std::as_bytes(std::span(text));
    entries_.insert(entries_.begin(), {"meta.json", {bytes.begin(), bytes.end()}});
    return std::move(entries_);
  }

 private:
  Result<void> add_image(const char* group, const char* name, const Image8& image) {
    MILLRACE_ASSIGN(ByteVector bytes, encode_webp(image));
    const std::string file = std::string(name) + ".webp";
    entries_.push_back({file, std::move(bytes)});
    meta_[group]["files"].push_back(file);
    return {};
  }

  Result<void> add_means() {
    Image8 low = image_for(n_), high = image_for(n_);
    std::array<double, 3> mins, maxs;
    mins.fill(INFINITY);
    maxs.fill(-INFINITY);
    for (size_t i = 0; i < 3 * n_; ++i) {
      const double v = log_position(cloud_.means[i]);
      mins[i % 3] = std::min(mins[i % 3], v);
      maxs[i % 3] = std::max(maxs[i % 3], v);
    }
    for (size_t i = 0; i < n_; ++i) {
      for (size_t k = 0; k < 3; ++k) {
        const double side = maxs[k] - mins[k];
        const double v = log_position(cloud_.means[3 * i + k]);
        const auto word =
            static_cast<uint32_t>(side > 0 ? std::lround((v - mins[k]) / side * 65535) : 0);
        low.pixels[4 * i + k] = static_cast<uint8_t>(word & 255);
        high.pixels[4 * i + k] = static_cast<uint8_t>(word >> 8);
      }
    }
    meta_["means"] = {{"mins", mins}, {"maxs", maxs}};
    MILLRACE_TRY(add_image("means", "means_l", low));
    return add_image("means", "means_u", high);
  }

  Result<void> add_by_codebook(const char* group, const std::vector<float>& values,
                               const std::vector<float>* opacities) {
    const Codebook codebook = make_codebook(values);
    Image8 image = image_for(n_);
    for (size_t i = 0; i < 3 * n_; ++i) {
      image.pixels[i / 3 * 4 + i % 3] = nearest_entry(codebook, values[i]);
    }
    for (size_t i = 0; i < n_ && opacities; ++i) {
      image.pixels[4 * i + 3] = opacity_byte((*opacities)[i]);
    }
    meta_[group] = {{"codebook", codebook}};
    return add_image(group, group, image);
  }

  Result<void> add_rotations() {
    Image8 image = image_for(n_);
    for (size_t i = 0; i < n_; ++i) {
      const float* q = &cloud_.rotations[4 * i];
      const SmallestThree small = smallest_three({q[0], q[1], q[2], q[3]});
      for (size_t k = 0; k < 3; ++k) {
        const float at = small.others[k] * std::numbers::sqrt2_v<float> / 2 + 0.5f;
        image.pixels[4 * i + k] = to_byte(255 * at);
      }
      image.pixels[4 * i + 3] = static_cast<uint8_t>(kLargestOffset + small.largest);
    }
    return add_image("quats", "quats", image);
  }

  // As many vectors as a 16-bit label allows, but no more than the rows are worth.
  size_t palette_size() const {
    size_t thousands = 1;
    while (thousands < 64 && 2 * thousands * 1024 <= n_) thousands *= 2;
    return thousands * 1024;
  }

  Result<void> add_palette() {
    const auto n_rest = static_cast<size_t>(sh_rest_count(cloud_.sh_degree));
    const Palette palette = make_palette(cloud_.sh_rest, 3 * n_rest, palette_size());
    const size_t n_centroids = palette.centroids.size() / (3 * n_rest);
    const Codebook codebook = make_codebook(palette.centroids);
    const auto rows =
        static_cast<uint32_t>((n_centroids + kCentroidsPerRow - 1) / kCentroidsPerRow);
    Image8 centroids = blank_image(kCentroidsPerRow * static_cast<uint32_t>(n_rest), rows);
    for (size_t i = 3; i < centroids.pixels.size(); i += 4) centroids.pixels[i] = 255;
    for (size_t i = 0; i < palette.centroids.size(); ++i) {
      // Centroid c, coefficient k: pixel 64 rows wide, the coefficients of one side by side.
      centroids.pixels[i / 3 * 4 + i % 3] = nearest_entry(codebook, palette.centroids[i]);
    }
    Image8 labels = image_for(n_);
    for (size_t i = 0; i < n_; ++i) {
      labels.pixels[4 * i] = static_cast<uint8_t>(palette.labels[i] & 255);
      labels.pixels[4 * i + 1] = static_cast<uint8_t>(palette.labels[i] >> 8);
    }
    meta_["shN"] = {{"count", n_centroids}, {"bands", cloud_.sh_degree}, {"codebook", codebook}};
    MILLRACE_TRY(add_image("shN", "shN_centroids", centroids));
    return add_image("shN", "shN_labels", labels);
  }

  const GaussianCloud& cloud_;
  const size_t n_;
  json meta_;
  std::vector<ZipEntry> entries_;
};

// ---- reading ----

class SogReader {
 public:
  SogReader(const std::vector<ZipEntry>& entries, const std::string& what)
      : entries_(entries), what_(what) {}

  Result<GaussianCloud> cloud() {
    MILLRACE_TRY(read_meta());
    MILLRACE_TRY(read_means());
    MILLRACE_TRY(read_scales());
    MILLRACE_TRY(read_rotations());
    MILLRACE_TRY(read_colors());
    cloud_.sh_degree = 0;
    if (meta_.contains("shN")) MILLRACE_TRY(read_palette());
    MILLRACE_TRY(check_finite_rows(cloud_, what_));
    return std::move(cloud_);
  }

 private:
  Error error(const std::string& text) const {
    return {ErrorCode::Dataset, fmt::format("{}: {}", what_, text)};
  }

  Result<void> read_meta() {
    const ZipEntry* entry = find("meta.json");
    if (entry == nullptr) return error("it has no meta.json");
    const auto* text = reinterpret_cast<const char*>(entry->bytes.data());
    meta_ = json::parse(text, text + entry->bytes.size(), nullptr, /*allow_exceptions=*/false);
    if (!meta_.is_object()) return error("meta.json is no JSON object");
    const json version = meta_.value("version", json());
    if (version != kVersion) {
      return error(fmt::format("meta.json: version {} is not read (2 is)", version.dump()));
    }
    const json count = meta_.value("count", json());
    if (!count.is_number_unsigned() || count.get<uint64_t>() > kMostRows) {
      return error(fmt::format("meta.json: count {} is no number of Gaussians", count.dump()));
    }
    n_ = count.get<size_t>();
    return {};
  }

  const ZipEntry* find(const std::string& name) const {
    for (const ZipEntry& entry : entries_) {
      if (entry.name == name) return &entry;
    }
    return nullptr;
  }

  // meta[group][key], or null.
  json value(const char* group, const char* key) const {
    const json object = meta_.value(group, json());
    return object.is_object() ? object.value(key, json()) : json();
  }

  Result<std::vector<double>> numbers(const char* group, const char* key, size_t n) const {
    const json array = value(group, key);
    std::vector<double> out;
    for (const json& element : array) {
      if (element.is_number()) out.push_back(element.get<double>());
    }
    if (array.is_array() && array.size() == n && out.size() == n) return out;
    return error(fmt::format("meta.json: {}.{} is no list of {} numbers", group, key, n));
  }

  // File `index` of a group as RGBA, with at least `n_pixels`.
  Result<Image8> image(const char* group, size_t index, uint64_t n_pixels) const {
    const json files = value(group, "files");
    if (!files.is_array() || files.size() <= index || !files[index].is_string()) {
      return error(fmt::format("meta.json: {}.files has no name {}", group, index));
    }
    const auto name = files[index].get<std::string>();
    const ZipEntry* entry = find(name);
    if (entry == nullptr) return error(fmt::format("'{}' of {} is missing", name, group));
    const fs::path where = fmt::format("{}: {}", what_, name);
    MILLRACE_ASSIGN(Image8 found, decode_webp(entry->bytes, where));
    if (uint64_t{found.width} * found.height < n_pixels) {
      return error(fmt::format("{}: {}x{} pixels are too few for {}", name, found.width,
                               found.height, n_pixels));
    }
    if (found.channels == 4) return found;
    Image8 rgba = blank_image(found.width, found.height);
    for (size_t i = 0; i < rgba.pixels.size(); ++i) {
      rgba.pixels[i] = i % 4 == 3 ? 255 : found.pixels[i / 4 * 3 + i % 4];
    }
    return rgba;
  }

  Result<void> read_means() {
    MILLRACE_ASSIGN(const auto mins, numbers("means", "mins", 3));
    MILLRACE_ASSIGN(const auto maxs, numbers("means", "maxs", 3));
    MILLRACE_ASSIGN(const Image8 low, image("means", 0, n_));
    MILLRACE_ASSIGN(const Image8 high, image("means", 1, n_));
    if (high.pixels.size() < 4 * n_) return error("means: two images of different sizes");
    for (size_t i = 0; i < n_; ++i) {
      for (size_t k = 0; k < 3; ++k) {
        const uint32_t word = low.pixels[4 * i + k] | high.pixels[4 * i + k] << 8;
        const double v = mins[k] + (maxs[k] - mins[k]) * word / 65535;
        cloud_.means.push_back(static_cast<float>(position_of_log(v)));
      }
    }
    return {};
  }

  Result<void> read_scales() {
    MILLRACE_ASSIGN(const auto codebook, numbers("scales", "codebook", 256));
    MILLRACE_ASSIGN(const Image8 pixels, image("scales", 0, n_));
    for (size_t i = 0; i < 3 * n_; ++i) {
      cloud_.log_scales.push_back(static_cast<float>(codebook[pixels.pixels[i / 3 * 4 + i % 3]]));
    }
    return {};
  }

  Result<void> read_rotations() {
    MILLRACE_ASSIGN(const Image8 pixels, image("quats", 0, n_));
    for (size_t i = 0; i < n_; ++i) {
      const uint8_t* p = &pixels.pixels[4 * i];
      if (p[3] < kLargestOffset) {
        return error(fmt::format("quats: pixel {} has alpha {}, below 252", i, p[3]));
      }
      SmallestThree small;
      small.largest = p[3] - kLargestOffset;
      for (size_t k = 0; k < 3; ++k) {
        small.others[k] = (static_cast<float>(p[k]) / 255 - 0.5f) * std::numbers::sqrt2_v<float>;
      }
      const auto q = from_smallest_three(small);
      cloud_.rotations.insert(cloud_.rotations.end(), q.begin(), q.end());
    }
    return {};
  }

  Result<void> read_colors() {
    MILLRACE_ASSIGN(const auto codebook, numbers("sh0", "codebook", 256));
    MILLRACE_ASSIGN(const Image8 pixels, image("sh0", 0, n_));
    for (size_t i = 0; i < n_; ++i) {
      for (size_t k = 0; k < 3; ++k) {
        cloud_.sh0.push_back(static_cast<float>(codebook[pixels.pixels[4 * i + k]]));
      }
      cloud_.opacities.push_back(logit_of_byte(pixels.pixels[4 * i + 3]));
    }
    return {};
  }

  Result<void> read_palette() {
    const json bands = value("shN", "bands"), count = value("shN", "count");
    if (!bands.is_number_unsigned() || bands.get<uint64_t>() < 1 || bands.get<uint64_t>() > 3 ||
        !count.is_number_unsigned() || count.get<uint64_t>() > 65536) {
      return error(
          fmt::format("meta.json: shN has {} bands and {} vectors; 1 to 3 and up to 65536 "
                      "are read",
                      bands.dump(), count.dump()));
    }
    const auto degree = bands.get<int>();
    const auto n_rest = static_cast<size_t>(sh_rest_count(degree));
    const auto n_centroids = count.get<size_t>();
    MILLRACE_ASSIGN(const auto codebook, numbers("shN", "codebook", 256));
    MILLRACE_ASSIGN(const Image8 centroids, image("shN", 0, n_centroids * n_rest));
    if (centroids.width != kCentroidsPerRow * n_rest) {
      return error(fmt::format("shN: the image of vectors is {} pixels wide, not {}",
                               centroids.width, kCentroidsPerRow * n_rest));
    }
    MILLRACE_ASSIGN(const Image8 labels, image("shN", 1, n_));
    cloud_.sh_rest.reserve(3 * n_rest * n_);
    for (size_t i = 0; i < n_; ++i) {
      const size_t label = labels.pixels[4 * i] | labels.pixels[4 * i + 1] << 8;
      if (label >= n_centroids) {
        return error(fmt::format("shN: pixel {} names vector {} of {}", i, label, n_centroids));
      }
      for (size_t k = 0; k < 3 * n_rest; ++k) {
        const uint8_t entry = centroids.pixels[4 * (label * n_rest + k / 3) + k % 3];
        cloud_.sh_rest.push_back(static_cast<float>(codebook[entry]));
      }
    }
    cloud_.sh_degree = degree;
    return {};
  }

  const std::vector<ZipEntry>& entries_;
  const std::string& what_;
  json meta_;
  size_t n_ = 0;
  GaussianCloud cloud_;
};

// The files that a folder's meta.json may name: every WebP beside it.
Result<std::vector<ZipEntry>> read_folder(const fs::path& meta) {
  std::vector<ZipEntry> entries;
  std::error_code ec;
  for (const auto& file : fs::directory_iterator(meta.parent_path(), ec)) {
    const fs::path& path = file.path();
    if (path.extension() != ".webp" && path.filename() != "meta.json") continue;
    MILLRACE_ASSIGN(ByteVector bytes, read_file(path));
    entries.push_back({path.filename().string(), std::move(bytes)});
  }
  return entries;
}

}  // namespace

Result<std::vector<ZipEntry>> encode_sog(const GaussianCloud& cloud) {
  const GaussianCloud ordered = take_rows(cloud, morton_order(cloud));
  return SogWriter(ordered).entries();
}

Result<void> write_sog(const fs::path& path, const GaussianCloud& cloud) {
  MILLRACE_TRY(check_writable(cloud, path));
  if (cloud.count() == 0) {
    return Error{ErrorCode::Internal, fmt::format("cannot write {}: no Gaussians", path.string())};
  }
  MILLRACE_ASSIGN(const auto entries, encode_sog(cloud));
  return write_file_atomically(path, encode_zip(entries));
}

Result<GaussianCloud> decode_sog(const std::vector<ZipEntry>& entries, const std::string& what) {
  return SogReader(entries, what).cloud();
}

Result<GaussianCloud> read_sog(const fs::path& path) {
  std::error_code ec;
  std::vector<ZipEntry> entries;
  if (fs::is_directory(path, ec)) {
    MILLRACE_ASSIGN(entries, read_folder(path / "meta.json"));
  } else if (path.filename() == "meta.json") {
    MILLRACE_ASSIGN(entries, read_folder(path));
  } else {
    MILLRACE_ASSIGN(const ByteVector bytes, read_file(path));
    MILLRACE_ASSIGN(entries, decode_zip(bytes, path.string()));
  }
  return decode_sog(entries, path.string());
}

}  // namespace millrace
