# The Debian package of the node.
include(${CMAKE_CURRENT_SOURCE_DIR}/cpack-common.cmake)
set(CPACK_PACKAGE_NAME chatelaine)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "systemd | systemd-standalone-sysusers")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "logrotate")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "redis-server (>= 5:7.0) | valkey-server, redis-tools")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "API keys and console sign-in with reliable revocation
A node of Chatelaine checks API keys from memory, at the speed of a static
page. Once a revocation has been answered, no node accepts that key for a
request that arrives later. All state is in a durable Redis.
.
The service is not started until it has settings: see OPERATIONS.md in
/usr/share/doc/chatelaine.")
set(control ${CMAKE_CURRENT_SOURCE_DIR}/debian)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${control}/postinst ${control}/prerm ${control}/postrm ${control}/conffiles)
include(CPack)
