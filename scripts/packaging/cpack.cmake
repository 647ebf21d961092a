# The Debian package. scripts/package builds it with the release preset, in a fixed folder and with a fixed time, so that
# everybody gets the same bytes from the same sources.
set(debian unknown)
if(EXISTS /etc/os-release)
  file(STRINGS /etc/os-release release REGEX "^VERSION_ID=")
  string(REGEX MATCH "[0-9]+" debian "${release}")
endif()
set(CHATELAINE_MAINTAINER "Chatelaine <packages@chatelaine.example>" CACHE STRING "Who answers for the package")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME chatelaine)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
set(CPACK_THREADS 1)
# Built for one Debian each; that of the newer one is the newer package.
set(CPACK_DEBIAN_PACKAGE_VERSION "${PROJECT_VERSION}+deb${debian}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${CHATELAINE_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
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
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/finish-package.cmake)
set(CPACK_CHATELAINE_PACKAGING ${CMAKE_CURRENT_SOURCE_DIR})
include(CPack)
