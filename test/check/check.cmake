# Clients that check keys by a node's table, in C, Python and Node.js (koffi): examples for users, driven against a real
# node. The client in C is what a user compiles; the others load the shared library.
add_executable(check_client ${CMAKE_CURRENT_LIST_DIR}/client.c)
target_include_directories(check_client PRIVATE ${PROJECT_SOURCE_DIR}/include)
add_npm_test(check_clients check node clients.test.js)
set_property(TEST check_clients APPEND PROPERTY ENVIRONMENT "CHECK_CLIENT=$<TARGET_FILE:check_client>"
  "CHATELAINE_LIBRARY=$<TARGET_FILE:chatelaine-check>")
