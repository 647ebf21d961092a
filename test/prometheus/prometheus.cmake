# What Prometheus thinks of what we give it. Skipped without promtool: see scripts/install-prometheus.
foreach(part metrics rules dashboard)
  add_measured_test(NAME prometheus_${part} COMMAND ${PROJECT_SOURCE_DIR}/test/prometheus/check ${part})
  set_tests_properties(prometheus_${part} PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77
    ENVIRONMENT "CHATELAINE_BINARY=$<TARGET_FILE:chatelaine>")
endforeach()
