# SPDX-License-Identifier: GPL-3.0-or-later
# KSyntaxHighlighting built against Qt 6, as klineage::dep-syntax-highlighting. Include <KSyntaxHighlighting/Repository>.
# Three ways, in this order: KDE Frameworks 6; a Qt 6 build of KDE Frameworks 5; the private copy that
# resources/setup/install.sh puts into build/deps (Debian 12 has no package of a Qt 6 build).
set(_prefix ${CMAKE_SOURCE_DIR}/build/deps/syntax-highlighting)
set(KLINEAGE_SYNTAX_HIGHLIGHTING_PREFIX ${_prefix} CACHE PATH "Private copy of KSyntaxHighlighting")
set(_target "")

find_package(KF6SyntaxHighlighting QUIET)
if(TARGET KF6::SyntaxHighlighting)
    set(_target KF6::SyntaxHighlighting)
    set(_origin "KDE Frameworks ${KF6SyntaxHighlighting_VERSION}")
else()
    # The same package name exists for Qt 5: take it only when its library links Qt 6.
    find_package(KF5SyntaxHighlighting QUIET)
    if(TARGET KF5::SyntaxHighlighting)
        get_target_property(_interface KF5::SyntaxHighlighting INTERFACE_LINK_LIBRARIES)
        if(_interface MATCHES "Qt6::")
            set(_target KF5::SyntaxHighlighting)
            set(_origin "KDE Frameworks ${KF5SyntaxHighlighting_VERSION}, Qt 6 build")
        endif()
    endif()
endif()

if(NOT _target)
    find_library(KLINEAGE_SYNTAX_HIGHLIGHTING_LIBRARY KSyntaxHighlighting
        PATHS ${KLINEAGE_SYNTAX_HIGHLIGHTING_PREFIX}/lib NO_DEFAULT_PATH)
    find_path(KLINEAGE_SYNTAX_HIGHLIGHTING_INCLUDE_DIR KSyntaxHighlighting/Repository
        PATHS ${KLINEAGE_SYNTAX_HIGHLIGHTING_PREFIX}/include NO_DEFAULT_PATH)
    mark_as_advanced(KLINEAGE_SYNTAX_HIGHLIGHTING_LIBRARY KLINEAGE_SYNTAX_HIGHLIGHTING_INCLUDE_DIR)
    if(KLINEAGE_SYNTAX_HIGHLIGHTING_LIBRARY AND KLINEAGE_SYNTAX_HIGHLIGHTING_INCLUDE_DIR)
        add_library(klineage-private-syntax-highlighting SHARED IMPORTED GLOBAL)
        set_target_properties(klineage-private-syntax-highlighting PROPERTIES
            IMPORTED_LOCATION ${KLINEAGE_SYNTAX_HIGHLIGHTING_LIBRARY}
            IMPORTED_SONAME libKSyntaxHighlighting.so.9)
        target_include_directories(klineage-private-syntax-highlighting SYSTEM INTERFACE
            ${KLINEAGE_SYNTAX_HIGHLIGHTING_INCLUDE_DIR}
            ${KLINEAGE_SYNTAX_HIGHLIGHTING_INCLUDE_DIR}/KSyntaxHighlighting)
        target_link_libraries(klineage-private-syntax-highlighting INTERFACE Qt6::Gui)
        set(_target klineage-private-syntax-highlighting)
        set(_origin "private copy")
    endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(KLineageSyntaxHighlighting REQUIRED_VARS _target
    REASON_FAILURE_MESSAGE "run resources/setup/install.sh, or build with -DKLINEAGE_BUILD_UI=OFF")
if(KLineageSyntaxHighlighting_FOUND)
    set(KLINEAGE_SYNTAX_HIGHLIGHTING_ORIGIN ${_origin})
    add_library(klineage-dep-syntax-highlighting INTERFACE)
    add_library(klineage::dep-syntax-highlighting ALIAS klineage-dep-syntax-highlighting)
    target_link_libraries(klineage-dep-syntax-highlighting INTERFACE ${_target})
endif()
