# The console in browsers: all of it in one, the main paths in another. Each file has a deployment of its own, so they run
# in parallel; the longest begin first (COST).
file(GLOB console_tests RELATIVE ${CMAKE_CURRENT_LIST_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.test.js)
list(REMOVE_ITEM console_tests firefox.test.js)
foreach(file ${console_tests})
  string(REPLACE .test.js "" name console_${file})
  add_npm_test(${name} console node run.js chromium ${file})
  set_tests_properties(${name} PROPERTIES COST 200)
  list(APPEND console_names ${name})
endforeach()
add_npm_test(console_firefox console node run.js firefox firefox.test.js)
add_npm_test(console_firefox_life console node run.js firefox life.test.js)
set_tests_properties(${console_names} console_firefox console_firefox_life PROPERTIES
                     LABELS "browser;console" TIMEOUT 1200 PROCESSORS 2)
add_measured_test(NAME console_assets COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DFOLDER=${PROJECT_BINARY_DIR}/assets
                                     -P ${CMAKE_CURRENT_LIST_DIR}/assets.cmake)
set_tests_properties(console_assets PROPERTIES LABELS console TIMEOUT 300)
