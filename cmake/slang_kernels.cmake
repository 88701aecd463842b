# GPU kernels: every src/kernels/*.slang becomes a SPIR-V module, CUDA code and Metal source, embedded in
# millrace_kernels_gpu. Without slangc (tools/setup installs it) the library is empty and only the CPU trains.
set(MILLRACE_CUDA_CODE "arch=compute_90,code=sm_90;arch=compute_75,code=compute_75" CACHE STRING
    "nvcc -gencode values that the CUDA kernels are compiled for")
# Modules whose float arithmetic is not contracted: two entry points must agree to the bit (tile counts and emission;
# the two epilogues of the projection's backward pass).
set(MILLRACE_EXACT_KERNELS project project_backward mcmc mrnf mrnf_bounds instances bands)
find_program(SLANGC slangc PATHS ${CMAKE_SOURCE_DIR}/.tools/slang NO_DEFAULT_PATH)
find_program(SLANGC slangc)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_package(CUDAToolkit QUIET)
set(NVCC ${CUDAToolkit_NVCC_EXECUTABLE})
if(NVCC AND NOT EXISTS ${NVCC})
  set(NVCC "")
endif()

file(GLOB slang_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/*.slang)
set(slang_folder ${CMAKE_BINARY_DIR}/kernels)
file(MAKE_DIRECTORY ${slang_folder})
set(modules "")
set(products "")
if(SLANGC)
  foreach(source ${slang_sources})
    get_filename_component(module ${source} NAME_WE)
    list(APPEND modules ${module})
    set(exact "")
    set(fmad --fmad=true)
    if(module IN_LIST MILLRACE_EXACT_KERNELS)
      set(exact --exact)
      set(fmad --fmad=false)
    endif()
    set(out ${slang_folder}/${module})
    # Without optimisation by Slang: the drivers do it, and the wheel lacks the library for it.
    set(flags -O0 -warnings-disable 41012 -I ${CMAKE_SOURCE_DIR}/src)
    set(strip ${CMAKE_SOURCE_DIR}/tools/kernels/strip_spirv.py)
    set(align ${CMAKE_SOURCE_DIR}/tools/kernels/align_spirv.py)
    add_custom_command(
      OUTPUT ${out}.spv
      COMMAND ${SLANGC} ${source} ${flags} -target spirv -profile spirv_1_5 -g0 -fvk-use-entrypoint-name -fvk-use-c-layout
              -depfile ${out}.spv.d -o ${out}.full.spv
      COMMAND ${Python3_EXECUTABLE} ${strip} ${out}.full.spv ${out}.spv ${exact}
      DEPENDS ${source} ${SLANGC} ${strip} ${align} DEPFILE ${out}.spv.d COMMENT "SPIR-V of ${module}" VERBATIM)
    add_custom_command(
      OUTPUT ${out}.cu ${out}.json
      COMMAND ${SLANGC} ${source} ${flags} -target cuda -DMILLRACE_CUDA -line-directive-mode none
              -depfile ${out}.cu.d -reflection-json ${out}.json -o ${out}.cu
      DEPENDS ${source} ${SLANGC} DEPFILE ${out}.cu.d COMMENT "CUDA source of ${module}" VERBATIM)
    add_custom_command(
      OUTPUT ${out}.metal
      COMMAND ${SLANGC} ${source} ${flags} -target metal -line-directive-mode none -depfile ${out}.metal.d -o ${out}.metal
      DEPENDS ${source} ${SLANGC} DEPFILE ${out}.metal.d COMMENT "Metal source of ${module}" VERBATIM)
    list(APPEND products ${out}.spv ${out}.json ${out}.metal)
    if(NVCC)
      set(gencodes ${MILLRACE_CUDA_CODE})
      list(TRANSFORM gencodes PREPEND "-gencode=")
      add_custom_command(
        OUTPUT ${out}.fatbin
        COMMAND ${NVCC} -fatbin ${gencodes} -std=c++17 -w ${fmad} -o ${out}.fatbin ${out}.cu
        DEPENDS ${out}.cu COMMENT "CUDA code of ${module}" VERBATIM)
      list(APPEND products ${out}.fatbin)
    endif()
  endforeach()
  list(LENGTH modules n_modules)
  if(NVCC)
    message(STATUS "GPU kernels: ${n_modules} modules for Vulkan, CUDA and Metal")
  else()
    message(STATUS "GPU kernels: ${n_modules} modules for Vulkan and Metal; no nvcc, so none for CUDA")
  endif()
else()
  message(STATUS "GPU kernels: none, slangc was not found (tools/setup installs it); the CPU trainer is built")
endif()

set(embedded ${slang_folder}/gpu_code.cpp)
set(embed ${CMAKE_SOURCE_DIR}/tools/kernels/embed.py)
add_custom_command(
  OUTPUT ${embedded}
  COMMAND ${Python3_EXECUTABLE} ${embed} ${embedded} ${slang_folder} ${modules}
  DEPENDS ${products} ${embed} COMMENT "Embed the GPU kernels" VERBATIM)
add_library(millrace_kernels_gpu STATIC ${embedded})
target_include_directories(millrace_kernels_gpu PUBLIC ${CMAKE_SOURCE_DIR}/src)

# How the compiled kernels lay out their arguments and the records, for a test that compares it with C++.
set(layouts ${slang_folder}/gpu_layouts.inc)
set(layout_modules ${modules})
if(SLANGC)
  set(probe ${CMAKE_SOURCE_DIR}/tests/kernels/layout_probe.slang)
  set(out ${slang_folder}/layout_probe)
  add_custom_command(
    OUTPUT ${out}.full.spv
    COMMAND ${SLANGC} ${probe} ${flags} -target spirv -profile spirv_1_5 -g0 -fvk-use-entrypoint-name -fvk-use-c-layout
            -depfile ${out}.spv.d -o ${out}.full.spv
    DEPENDS ${probe} ${SLANGC} DEPFILE ${out}.spv.d COMMENT "SPIR-V layout of the records" VERBATIM)
  add_custom_command(
    OUTPUT ${out}.json
    COMMAND ${SLANGC} ${probe} ${flags} -target cuda -DMILLRACE_CUDA -depfile ${out}.cu.d -reflection-json ${out}.json
            -o ${out}.cu
    DEPENDS ${probe} ${SLANGC} DEPFILE ${out}.cu.d COMMENT "CUDA layout of the records" VERBATIM)
  list(APPEND layout_modules layout_probe)
  list(APPEND products ${out}.full.spv ${out}.json)
endif()
add_custom_command(
  OUTPUT ${layouts}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/kernels/layouts.py ${layouts} ${slang_folder} ${layout_modules}
  DEPENDS ${products} ${CMAKE_SOURCE_DIR}/tools/kernels/layouts.py COMMENT "Layouts of the GPU kernels" VERBATIM)
add_custom_target(gpu_layouts DEPENDS ${layouts})
