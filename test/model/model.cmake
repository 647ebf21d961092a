# The model of leases and barriers: what is decided quickly, if the model has changed since everything was searched, and
# that its script can fail. Everything: scripts/model.
add_measured_test(NAME model_short COMMAND ${PROJECT_SOURCE_DIR}/scripts/model --changed)
add_measured_test(NAME model_can_fail COMMAND ${CMAKE_CURRENT_LIST_DIR}/can-fail)
set_tests_properties(model_short PROPERTIES TIMEOUT 3600 PROCESSORS 2 COST 100)
set_tests_properties(model_can_fail PROPERTIES TIMEOUT 1800 COST 80)
