# The middleware of docker/backends in each language that is installed.
add_npm_test(backends backends node --test backends.test.js)
find_package(CURL QUIET)
if(CURL_FOUND)
  add_executable(backend_c ${CMAKE_CURRENT_LIST_DIR}/server.c ${PROJECT_SOURCE_DIR}/docker/backends/c/chatelaine.c)
  target_include_directories(backend_c PRIVATE ${PROJECT_SOURCE_DIR}/docker/backends/c)
  target_link_libraries(backend_c PRIVATE deps::cjson CURL::libcurl)
  set_property(TEST backends APPEND PROPERTY ENVIRONMENT "BACKEND_C=$<TARGET_FILE:backend_c>")
endif()
