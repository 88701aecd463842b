# The Vulkan backend: built where its headers are, linked to no Vulkan library (it is opened at run time).
set(MILLRACE_VULKAN_BACKEND "")
if(MILLRACE_VULKAN)
  set(MILLRACE_VULKAN_BACKEND vulkan)
  target_include_directories(millrace_backends_vulkan SYSTEM PRIVATE ${VULKAN_HEADERS})
  target_link_libraries(millrace_backends_vulkan PRIVATE millrace_kernels_gpu ${CMAKE_DL_LIBS})
else()
  message(STATUS "Vulkan backend: left out (libvulkan-dev has the headers)")
endif()
