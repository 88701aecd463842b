// ZIP archives of a few small files: stored entries out, stored or deflated ones in.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "formats/compress.h"

namespace millrace {

struct ZipEntry {
  std::string name;  // without a folder
  ByteVector bytes;
};

/// The archive's bytes, the same for the same entries. Less than 4 GiB in all.
ByteVector encode_zip(const std::vector<ZipEntry>& entries);

/// All files of an archive; folders are left out. `what` opens the message. Error:
/// ErrorCode::Dataset naming the byte or the entry.
Result<std::vector<ZipEntry>> decode_zip(ByteSpan bytes, const std::string& what);

}  // namespace millrace
