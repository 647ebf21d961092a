# The console in browsers: all of it in one, the main path in another. It takes longest, so it begins first (COST).
add_npm_test(console console node run.js chromium)
add_npm_test(console_firefox console node run.js firefox)
set_tests_properties(console console_firefox PROPERTIES LABELS console TIMEOUT 2400 PROCESSORS 2)
set_tests_properties(console PROPERTIES COST 400)
add_test(NAME console_assets COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DFOLDER=${PROJECT_BINARY_DIR}/assets
                                     -P ${CMAKE_CURRENT_LIST_DIR}/assets.cmake)
set_tests_properties(console_assets PROPERTIES LABELS console TIMEOUT 60)
