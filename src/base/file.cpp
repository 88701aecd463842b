// File reading and crash-safe writing.
#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace millrace {
namespace {

namespace fs = std::filesystem;

Error io_error(ErrorCode code, std::string_view verb, const fs::path& path, int err) {
  return {code, fmt::format("cannot {} {}: {}", verb, path.string(), std::strerror(err))};
}

}  // namespace

Result<std::vector<std::byte>> read_file(const fs::path& path, ErrorCode on_error) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return io_error(on_error, "open", path, errno);
  struct stat status = {};
  if (::fstat(fd, &status) != 0 || S_ISDIR(status.st_mode)) {
    ::close(fd);
    return Error{on_error, fmt::format("cannot read {}: it is not a regular file", path.string())};
  }
  std::vector<std::byte> bytes(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int err = errno;
      ::close(fd);
      return io_error(on_error, "read", path, err);
    }
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  ::close(fd);
  bytes.resize(done);
  return bytes;
}

Result<std::string> read_text_file(const fs::path& path, ErrorCode on_error) {
  MILLRACE_ASSIGN(const std::vector<std::byte> bytes, read_file(path, on_error));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<AtomicFile> AtomicFile::create(const fs::path& path) {
  std::error_code ec;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), ec);
  if (ec) {
    return Error{ErrorCode::Output, fmt::format("cannot create folder {}: {}",
                                                path.parent_path().string(), ec.message())};
  }
  AtomicFile file;
  file.path_ = path;
  file.aside_ = path;
  file.aside_ += fmt::format(".partial-{}", ::getpid());
  file.fd_ = ::open(file.aside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file.fd_ < 0) return io_error(ErrorCode::Output, "write", path, errno);
  return file;
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(aside_.c_str());
}

Result<void> AtomicFile::write(std::span<const std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(ErrorCode::Output, "write", path_, errno);
    done += static_cast<size_t>(n);
  }
  return {};
}

Result<void> AtomicFile::commit() {
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) {
    return io_error(ErrorCode::Output, "write", path_, errno);
  }
  ::close(std::exchange(fd_, -1));
  if (::rename(aside_.c_str(), path_.c_str()) != 0) {
    const int err = errno;
    ::unlink(aside_.c_str());
    return io_error(ErrorCode::Output, "rename into place", path_, err);
  }
  return {};
}

Result<void> write_file_atomically(const fs::path& path, std::span<const std::byte> bytes) {
  MILLRACE_ASSIGN(AtomicFile file, AtomicFile::create(path));
  MILLRACE_TRY(file.write(bytes));
  return file.commit();
}

Result<void> write_file_atomically(const fs::path& path, std::string_view text) {
  return write_file_atomically(path,
                               std::as_bytes(std::span<const char>(text.data(), text.size())));
}

}  // namespace millrace
