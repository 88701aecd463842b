# Which library each layer uses; docs/adr/0001 says why each is here.
target_link_libraries(millrace_kernels PUBLIC TBB::tbb)
target_link_libraries(millrace_data PUBLIC Eigen3::Eigen nlohmann_json::nlohmann_json PkgConfig::IMAGE_LIBS)
target_link_libraries(millrace_device PUBLIC spdlog::spdlog)
