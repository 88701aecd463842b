# The page of src/formats/viewer/ as a header, so that the program carries it.
set(viewer ${CMAKE_SOURCE_DIR}/src/formats/viewer)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${viewer}/viewer.html ${viewer}/viewer.js)
file(READ ${viewer}/viewer.html VIEWER_HTML)
file(READ ${viewer}/viewer.js VIEWER_SCRIPT)
configure_file(${viewer}/viewer_page.h.in ${CMAKE_BINARY_DIR}/generated/formats/viewer_page.h @ONLY)
target_include_directories(millrace_formats PRIVATE ${CMAKE_BINARY_DIR}/generated)
