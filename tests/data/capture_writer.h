// Tiny captures and images in temporary folders, for the tests of the data layer.
#pragma once

#include <png.h>
#include <tiffio.h>
#include <turbojpeg.h>
#include <unistd.h>
#include <webp/encode.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/image.h"

namespace millrace::test {

namespace fs = std::filesystem;

/// A folder that is removed with everything in it.
class TempFolder {
 public:
  TempFolder() {
    static int count = 0;
    path_ = fs::temp_directory_path() /
            ("millrace-data-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    fs::create_directories(path_);
  }
  ~TempFolder() {
    std::error_code ec;
    fs::remove_all(path_, ec);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const fs::path& path() const { return path_; }
  fs::path operator/(const fs::path& name) const { return path_ / name; }

 private:
  fs::path path_;
};

inline void write_bytes(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A smooth picture, different in every pixel row and column.
inline Image8 gradient_image(uint32_t width, uint32_t height, uint32_t channels = 3) {
  Image8 image{width, height, channels, {}};
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      const uint32_t value[4] = {x * 255 / width, y * 255 / height,
                                 (x + y) * 255 / (width + height), 255 - x * 255 / width};
      for (uint32_t k = 0; k < channels; ++k)
        image.pixels.push_back(static_cast<uint8_t>(value[k]));
    }
  }
  return image;
}

/// `format` is a PNG_FORMAT_ constant whose samples `pixels` holds.
inline void write_png(const fs::path& path, uint32_t width, uint32_t height, uint32_t format,
                      const void* pixels) {
  fs::create_directories(path.parent_path());
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  png_image_write_to_file(&image, path.c_str(), 0, pixels, 0, nullptr);
}

inline void write_png(const fs::path& path, const Image8& image) {
  write_png(path, image.width, image.height, image.channels == 4 ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB,
            image.pixels.data());
}

/// `format` is a TJPF_ constant of the pixels.
inline void write_jpeg(const fs::path& path, uint32_t width, uint32_t height, int format,
                       const uint8_t* pixels, int subsampling = TJSAMP_444) {
  tjhandle encoder = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long n_bytes = 0;  // NOLINT: the library's type
  tjCompress2(encoder, pixels, static_cast<int>(width), 0, static_cast<int>(height), format, &bytes,
              &n_bytes, subsampling, 98, TJFLAG_ACCURATEDCT);
  write_bytes(path, std::string(reinterpret_cast<char*>(bytes), n_bytes));
  tjFree(bytes);
  tjDestroy(encoder);
}

inline void write_jpeg(const fs::path& path, const Image8& image) {
  write_jpeg(path, image.width, image.height, TJPF_RGB, image.pixels.data());
}

/// Appends a value in the byte order of this machine (little endian, as COLMAP's).
template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

struct TestCamera {
  uint32_t id = 1;
  int model = 1;
  const char* model_name = "PINHOLE";
  uint64_t width = 32, height = 24;
  std::vector<double> params = {30, 30, 16, 12};
};

struct TestImage {
  std::string name;
  std::vector<double> q = {1, 0, 0, 0}, t = {0, 0, 4};
  uint32_t camera_id = 1;
};

struct TestPoint {
  double x, y, z;
};

/// A COLMAP model and how to write it.
struct TestModel {
  std::vector<TestCamera> cameras = {TestCamera{}};
  std::vector<TestImage> images;
  std::vector<TestPoint> points;

  std::string cameras_bin() const {
    std::string bytes;
    put<uint64_t>(bytes, cameras.size());
    for (const TestCamera& camera : cameras) {
      put(bytes, camera.id), put<int32_t>(bytes, camera.model);
      put(bytes, camera.width), put(bytes, camera.height);
      for (const double value : camera.params) put(bytes, value);
    }
    return bytes;
  }

  std::string images_bin() const {
    std::string bytes;
    put<uint64_t>(bytes, images.size());
    uint32_t id = 7;
    for (const TestImage& image : images) {
      put<uint32_t>(bytes, id += 3);
      for (const double value : image.q) put(bytes, value);
      for (const double value : image.t) put(bytes, value);
      put(bytes, image.camera_id);
      bytes += image.name + '\0';
      put<uint64_t>(bytes, 1);
      put(bytes, 1.5), put(bytes, 2.5), put<uint64_t>(bytes, ~0ull);
    }
    return bytes;
  }

  std::string points_bin() const {
    std::string bytes;
    put<uint64_t>(bytes, points.size());
    uint64_t id = 1;
    for (const TestPoint& point : points) {
      put(bytes, id++);
      put(bytes, point.x), put(bytes, point.y), put(bytes, point.z);
      bytes += "\x0A\x14\x1E";
      put(bytes, 0.5);
      put<uint64_t>(bytes, 1);
      put<uint32_t>(bytes, 10), put<uint32_t>(bytes, 0);
    }
    return bytes;
  }

  void write_binary(const fs::path& folder) const {
    write_bytes(folder / "cameras.bin", cameras_bin());
    write_bytes(folder / "images.bin", images_bin());
    write_bytes(folder / "points3D.bin", points_bin());
  }

  std::string cameras_txt() const {
    std::string text = "# cameras\n";
    for (const TestCamera& camera : cameras) {
      text += std::to_string(camera.id) + ' ' + camera.model_name + ' ' +
              std::to_string(camera.width) + ' ' + std::to_string(camera.height);
      for (const double value : camera.params) text += ' ' + std::to_string(value);
      text += '\n';
    }
    return text;
  }

  std::string images_txt(const std::string& points_line = "1.5 2.5 -1\n") const {
    std::string text = "# images\n";
    uint32_t id = 7;
    for (const TestImage& image : images) {
      text += std::to_string(id += 3);
      for (const double value : image.q) text += ' ' + std::to_string(value);
      for (const double value : image.t) text += ' ' + std::to_string(value);
      text += ' ' + std::to_string(image.camera_id) + ' ' + image.name + '\n' + points_line;
    }
    return text;
  }

  std::string points_txt() const {
    std::string text = "# points\n";
    uint64_t id = 1;
    for (const TestPoint& p : points) {
      text += std::to_string(id++) + ' ' + std::to_string(p.x) + ' ' + std::to_string(p.y) + ' ' +
              std::to_string(p.z) + " 10 20 30 0.5 10 0\n";
    }
    return text;
  }

  void write_text(const fs::path& folder) const {
    write_bytes(folder / "cameras.txt", cameras_txt());
    write_bytes(folder / "images.txt", images_txt());
    write_bytes(folder / "points3D.txt", points_txt());
  }
};

/// `n` images called a00.png.. on a line, each looking along +z, three points in front of them.
inline TestModel small_model(int n) {
  TestModel model;
  for (int i = 0; i < n; ++i) {
    const std::string digits = std::to_string(100 + i).substr(1);
    model.images.push_back({"a" + digits + ".png", {1, 0, 0, 0}, {0.5 * i, 0, 4}, 1});
  }
  model.points = {{0, 0, 0}, {1, 0, 0.5}, {0, 1, -0.5}};
  return model;
}

/// Writes every image of `model` below `folder` at its camera's size.
inline void write_photos(const TestModel& model, const fs::path& folder) {
  for (const TestImage& image : model.images) {
    const TestCamera& camera = model.cameras.front();
    write_png(folder / image.name, gradient_image(static_cast<uint32_t>(camera.width),
                                                  static_cast<uint32_t>(camera.height)));
  }
}

inline bool any_contains(const std::vector<std::string>& texts, const std::string& part) {
  for (const std::string& text : texts) {
    if (text.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace millrace::test
