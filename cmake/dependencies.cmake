# Which library each layer uses; docs/adr/0001 says why each is here.
target_link_libraries(millrace_base PUBLIC TBB::tbb)
target_link_libraries(millrace_data PUBLIC Eigen3::Eigen nlohmann_json::nlohmann_json PkgConfig::IMAGE_LIBS)
target_link_libraries(millrace_formats PUBLIC PkgConfig::PACK_LIBS PkgConfig::IMAGE_LIBS)
target_link_libraries(millrace_device PUBLIC spdlog::spdlog PRIVATE nlohmann_json::nlohmann_json)

# What the binary was built from, for report.json and --version.
execute_process(COMMAND git rev-parse --short=12 HEAD WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
                OUTPUT_VARIABLE MILLRACE_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT MILLRACE_COMMIT)
  set(MILLRACE_COMMIT unknown)
endif()
configure_file(${CMAKE_SOURCE_DIR}/src/train/version.h.in ${CMAKE_BINARY_DIR}/generated/train/version.h)
target_include_directories(millrace_train PUBLIC ${CMAKE_BINARY_DIR}/generated)
target_link_libraries(millrace_train PUBLIC PkgConfig::CRYPTO)
