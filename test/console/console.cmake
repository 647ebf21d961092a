# The console in a browser. The machine is busy while it runs: it has the machine for itself.
add_npm_test(console console node run.js)
set_tests_properties(console PROPERTIES LABELS console TIMEOUT 900 RUN_SERIAL TRUE)
add_test(NAME console_assets COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DFOLDER=${PROJECT_BINARY_DIR}/assets
                                     -P ${CMAKE_CURRENT_LIST_DIR}/assets.cmake)
set_tests_properties(console_assets PROPERTIES LABELS console TIMEOUT 60)
