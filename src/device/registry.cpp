// The registry: backends by name, and the choice of a device by id.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "device/device.h"

namespace millrace {
namespace {

// Best first. A backend that is not named here comes last and is never chosen by "auto".
constexpr std::string_view kOrder[] = {"cuda", "hip", "metal", "vulkan", "cpu"};

std::vector<const Backend*>& backends() {
  static std::vector<const Backend*> all;
  return all;
}

size_t rank(std::string_view name) {
  return static_cast<size_t>(std::find(std::begin(kOrder), std::end(kOrder), name) -
                             std::begin(kOrder));
}

std::string_view backend_name(std::string_view id) { return id.substr(0, id.find(':')); }

std::string argument_of(std::string_view id) {
  const size_t colon = id.find(':');
  return colon == std::string_view::npos ? std::string() : std::string(id.substr(colon + 1));
}

const Backend* find_backend(std::string_view name) {
  for (const Backend* backend : backends()) {
    if (name == backend->name) return backend;
  }
  return nullptr;
}

std::string known_ids() {
  std::string ids = "auto";
  for (const DeviceInfo& info : list_devices()) ids += ", " + info.id;
  for (const Backend* backend : backends()) {
    if (backend->list().empty()) ids += fmt::format(", {}:...", backend->name);
  }
  return ids;
}

Result<std::unique_ptr<Device>> open_best() {
  for (const DeviceInfo& info : list_devices()) {
    const std::string_view name = backend_name(info.id);
    if (info.software || info.partial || rank(name) == std::size(kOrder)) continue;
    auto device = find_backend(name)->open(argument_of(info.id));
    if (device.ok()) return device;
    spdlog::warn("device {} does not open and is passed over: {}", info.id, device.error().message);
  }
  return Error{ErrorCode::Usage, "no device opens; known ids: " + known_ids()};
}

}  // namespace

bool register_backend(const Backend* backend) {
  backends().push_back(backend);
  return true;
}

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> all;
  for (const Backend* backend : backends()) {
    for (DeviceInfo& info : backend->list()) all.push_back(std::move(info));
  }
  std::stable_sort(all.begin(), all.end(), [](const DeviceInfo& a, const DeviceInfo& b) {
    if (a.software != b.software) return b.software;
    return rank(backend_name(a.id)) < rank(backend_name(b.id));
  });
  return all;
}

Result<std::unique_ptr<Device>> open_device(const std::string& id) {
  if (id == "auto") return open_best();
  const Backend* backend = find_backend(backend_name(id));
  if (backend == nullptr) {
    return Error{ErrorCode::Usage, fmt::format("no device '{}'; known ids: {}", id, known_ids())};
  }
  return backend->open(argument_of(id));
}

}  // namespace millrace
