# src/api/openapi.json against the code (in C), by a linter, and against live answers (both on Node.js).
add_criterion_test(openapi SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_openapi.c LIBS api TIMEOUT 300)
add_npm_test(openapi_lint openapi node lint.test.js)
add_npm_test(openapi_contract openapi node contract.test.js)
set_tests_properties(openapi openapi_lint openapi_contract PROPERTIES LABELS openapi)
set_tests_properties(openapi_contract PROPERTIES TIMEOUT 3600 PROCESSORS 2 COST 300)
