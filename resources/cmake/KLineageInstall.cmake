# SPDX-License-Identifier: GPL-3.0-or-later
# klineage_install(): what `cmake --install` brings, and the Debian package that CPack makes of it. Call it when all programs are known.
#
#   bin/                                klineage, klineage-cli, klineage-gate
#   lib/klineage/                       libraries that the system lacks; programs find them by where they lie
#   share/klineage/workspace/           the workspace that ships: workloads/ and skills/
#   share/klineage/{python,agents}/     the reader for notebooks, the skill for agents
#   share/{applications,metainfo,icons,man,bash-completion,zsh,fish,doc}/
#
# The component `debian` has what only a Debian package wants and is left out otherwise.
set(KLINEAGE_PRIVATE_LIBDIR lib/klineage) # core/device/references/cublibrary.cpp knows it too

set(_programs klineage klineage-cli klineage-gate)
set(_packaging ${CMAKE_SOURCE_DIR}/resources/packaging)

# Manual pages and completions, made by the programs themselves: ${CMAKE_BINARY_DIR}/manual.
function(_klineage_install_manual)
    set(_manual ${CMAKE_BINARY_DIR}/manual)
    file(MAKE_DIRECTORY ${_manual})
    set(_made)
    foreach(_program ${ARGN})
        set(_page ${_manual}/${_program}.1)
        set(_compress)
        if(GZIP_PROGRAM)
            set(_compress COMMAND ${GZIP_PROGRAM} -9nfk ${_page})
            set(_page ${_page}.gz)
        endif()
        add_custom_command(OUTPUT ${_page} ${_manual}/${_program}.bash ${_manual}/_${_program} ${_manual}/${_program}.fish
            COMMAND ${_program} --generate ${_manual}
            ${_compress}
            DEPENDS ${_program}
            COMMENT "Writing the manual page and the completions of ${_program}"
            VERBATIM)
        list(APPEND _made ${_page})
        install(FILES ${_page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
        install(FILES ${_manual}/${_program}.bash RENAME ${_program}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
        install(FILES ${_manual}/_${_program} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
        install(FILES ${_manual}/${_program}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
    endforeach()
    add_custom_target(klineage-manual-pages ALL DEPENDS ${_made})
    add_dependencies(klineage-installed klineage-manual-pages)
endfunction()

# Debian 12 has KSyntaxHighlighting for Qt 5 only: the private copy goes along.
function(_klineage_install_private_libraries)
    if(TARGET klineage-cub)
        install(TARGETS klineage-cub LIBRARY DESTINATION ${KLINEAGE_PRIVATE_LIBDIR})
        add_dependencies(klineage-installed klineage-cub)
    endif()
    if(NOT KLINEAGE_BUILD_UI OR NOT TARGET klineage-private-syntax-highlighting)
        return()
    endif()
    get_target_property(_library klineage-private-syntax-highlighting IMPORTED_LOCATION)
    get_target_property(_soname klineage-private-syntax-highlighting IMPORTED_SONAME)
    file(REAL_PATH ${_library} _library)
    install(FILES ${_library} DESTINATION ${KLINEAGE_PRIVATE_LIBDIR} RENAME ${_soname})
    # It looks for Qt where its own package would have it.
    install(CODE "file(RPATH_REMOVE FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${KLINEAGE_PRIVATE_LIBDIR}/${_soname}\")")
    file(RELATIVE_PATH _folder ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_PREFIX}/${KLINEAGE_PRIVATE_LIBDIR})
    set_target_properties(klineage PROPERTIES INSTALL_RPATH "\$ORIGIN/${_folder}")
    file(READ ${_packaging}/copyright-syntax-highlighting _copyright)
    set(KLINEAGE_PRIVATE_COPYRIGHT "${_copyright}" PARENT_SCOPE)
endfunction()

function(_klineage_install_desktop)
    install(FILES ${_packaging}/org.klineage.Workbench.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications)
    install(FILES ${_packaging}/org.klineage.Workbench.metainfo.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/metainfo)
    install(FILES ${CMAKE_SOURCE_DIR}/resources/icons/klineage.svg
        DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps)
    foreach(_font inter jetbrains-mono)
        install(FILES ${CMAKE_SOURCE_DIR}/resources/fonts/${_font}/OFL.txt DESTINATION ${CMAKE_INSTALL_DOCDIR}
            RENAME OFL-${_font}.txt)
    endforeach()
endfunction()

# The files that Debian wants in share/doc, and what CPack has to know.
function(_klineage_debian_package)
    set(_release 1)
    if(EXISTS /etc/os-release)
        file(STRINGS /etc/os-release _id REGEX "^VERSION_ID=\"?[0-9]+")
        string(REGEX REPLACE "[^0-9]" "" _id "${_id}")
        if(_id)
            set(_release 1~deb${_id})
        endif()
    endif()
    set(_maintainer "KLineage Workbench authors <klineage@example.org>")
    if(NOT "$ENV{DEBEMAIL}" STREQUAL "") # as Debian's own tools have it
        set(_maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
    endif()
    string(TIMESTAMP _date "%a, %d %b %Y %H:%M:%S +0000" UTC) # or of SOURCE_DATE_EPOCH
    set(_debian ${CMAKE_BINARY_DIR}/debian)
    configure_file(${_packaging}/copyright.in ${_debian}/copyright @ONLY)
    file(CONFIGURE OUTPUT ${_debian}/changelog.Debian @ONLY CONTENT
"klineage (@PROJECT_VERSION@-@_release@) unstable; urgency=medium

  * Built by CPack from the project's sources; what changed is in changelog.gz.

 -- @_maintainer@  @_date@
")
    configure_file(${CMAKE_SOURCE_DIR}/CHANGELOG.md ${_debian}/changelog COPYONLY)
    execute_process(COMMAND ${GZIP_PROGRAM} -9nfk ${_debian}/changelog.Debian ${_debian}/changelog)
    install(FILES ${_debian}/copyright ${_debian}/changelog.Debian.gz ${_debian}/changelog.gz
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT debian EXCLUDE_FROM_ALL)

    set(CPACK_GENERATOR DEB)
    set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};${PROJECT_NAME};ALL;/;${CMAKE_BINARY_DIR};${PROJECT_NAME};debian;/")
    set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
    set(CPACK_STRIP_FILES ON)
    set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
        WORLD_READ WORLD_EXECUTE)
    set(CPACK_PACKAGE_VENDOR "KLineage Workbench authors")
    set(CPACK_PACKAGE_CONTACT "${_maintainer}")
    set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "workbench for GPU kernel lineages and SkillCards")
    set(CPACK_PACKAGE_DESCRIPTION
"KLineage takes a fast GPU kernel apart, one simplification at a time, each
accepted by a gate that compiles it, checks it and times it. The steps, taken
forward again, are lifted into SkillCards that were shown to pay.
.
This package has the desktop tool in which people review lineages and cards,
klineage-cli with all of it for the command line and for agents, the gate for
CUDA and OpenCL, and an example workspace with recorded lineages.")
    set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
    set(CPACK_DEBIAN_PACKAGE_RELEASE ${_release})
    set(CPACK_DEBIAN_PACKAGE_SECTION devel)
    set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
    # What is loaded late is no shared library of any program.
    set(_late)
    foreach(_file ${KLINEAGE_CURL_FILE} ${KLINEAGE_GIT2_FILE})
        file(REAL_PATH ${_file} _file)
        execute_process(COMMAND dpkg-query -S ${_file} OUTPUT_VARIABLE _owner ERROR_QUIET)
        if(_owner MATCHES "^([a-z0-9.+-]+):")
            list(APPEND _late ${CMAKE_MATCH_1})
        endif()
    endforeach()
    list(JOIN _late ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
    # What is loaded when it is there. CUDA comes with NVIDIA's driver and toolkit, whose packages have many names.
    set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
        "ocl-icd-libopencl1 | libopencl1, pocl-opencl-icd, libopenblas0, libdnnl3.6 | libdnnl2, qt6-wayland")
    set(CPACK_DEBIAN_PACKAGE_SUGGESTS "openssh-client, python3, slurm-client")
    include(CPack)
endfunction()

function(klineage_install)
    set(_built)
    get_property(_left_out GLOBAL PROPERTY KLINEAGE_LEFT_OUT)
    foreach(_program ${_programs})
        if(TARGET ${_program} AND NOT _program IN_LIST _left_out)
            list(APPEND _built ${_program})
        endif()
    endforeach()
    if(NOT _built)
        return()
    endif()
    add_custom_target(klineage-installed) # all that is installed
    add_dependencies(klineage-installed ${_built})
    set(KLINEAGE_PRIVATE_COPYRIGHT "")
    _klineage_install_private_libraries()
    install(TARGETS ${_built} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/workloads ${CMAKE_SOURCE_DIR}/skills
        DESTINATION ${CMAKE_INSTALL_DATADIR}/klineage/workspace
        PATTERN ".*" EXCLUDE PATTERN "*.torn" EXCLUDE)
    install(FILES ${CMAKE_SOURCE_DIR}/resources/python/klineage.py DESTINATION ${CMAKE_INSTALL_DATADIR}/klineage/python)
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/resources/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/klineage)
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/resources/agents DESTINATION ${CMAKE_INSTALL_DATADIR}/klineage)
    install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
    if(TARGET klineage)
        _klineage_install_desktop()
    endif()
    find_program(GZIP_PROGRAM gzip)
    find_program(FILE_PROGRAM file)
    find_program(DPKG_SHLIBDEPS_PROGRAM dpkg-shlibdeps)
    mark_as_advanced(GZIP_PROGRAM FILE_PROGRAM DPKG_SHLIBDEPS_PROGRAM)
    if(NOT CMAKE_CROSSCOMPILING)
        _klineage_install_manual(${_built})
    endif()
    # Without them a package would be made, but one that depends on nothing.
    set(KLINEAGE_HAVE_PACKAGING 0 PARENT_SCOPE)
    if(GZIP_PROGRAM AND FILE_PROGRAM AND DPKG_SHLIBDEPS_PROGRAM AND NOT CMAKE_CROSSCOMPILING)
        set(KLINEAGE_HAVE_PACKAGING 1 PARENT_SCOPE)
        _klineage_debian_package()
    endif()
endfunction()
