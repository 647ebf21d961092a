# What the Debian packages have in common. scripts/package builds them with the release preset, in a fixed folder and with
# a fixed time, so that everybody gets the same bytes from the same sources.
set(debian unknown)
if(EXISTS /etc/os-release)
  file(STRINGS /etc/os-release release REGEX "^VERSION_ID=")
  string(REGEX MATCH "[0-9]+" debian "${release}")
endif()
set(CHATELAINE_MAINTAINER "Chatelaine <packages@chatelaine.example>" CACHE STRING "Who answers for the package")
set(CPACK_GENERATOR DEB)
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
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/scripts/packaging/finish-package.cmake)
set(CPACK_CHATELAINE_PACKAGING ${PROJECT_SOURCE_DIR}/scripts/packaging)
