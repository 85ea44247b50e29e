# SPDX-License-Identifier: GPL-3.0-or-later
# How everything here is compiled: interface target klineage-options, and the compiler cache.

add_library(klineage-options INTERFACE)
target_compile_features(klineage-options INTERFACE cxx_std_20)
target_include_directories(klineage-options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(klineage-options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees impossible lengths in inlined std::string code (its bugs 105329 and 105651).
    target_compile_options(klineage-options INTERFACE -Wno-restrict -Wno-stringop-overflow)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    # GCC 13 and 14 take every argument for what a returned reference is to (their bug 109642).
    target_compile_options(klineage-options INTERFACE -Wno-dangling-reference)
endif()
if(KLINEAGE_WERROR)
    target_compile_options(klineage-options INTERFACE -Werror)
endif()
if(KLINEAGE_SANITIZE)
    # A null or misaligned access is a third of the checks' code; the first stops a program without being asked for.
    set(_sanitizers -fsanitize=address,undefined -fno-sanitize=null,alignment -fno-sanitize-recover=undefined)
    # Quick to compile, but for the rooms that compute much (property KLINEAGE_COMPUTES). Tests look at what is instrumented, and are
    # not themselves: compiled as the preset `release` does, they come from its compiler cache.
    set(_looked_at -UNDEBUG -g1 -O$<BOOL:$<TARGET_PROPERTY:KLINEAGE_COMPUTES>> -fno-omit-frame-pointer ${_sanitizers})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        # The sanitizers' extra branches make GCC's flow warnings see paths that do not exist.
        list(APPEND _looked_at -Wno-maybe-uninitialized)
    endif()
    target_compile_options(klineage-options INTERFACE "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:KLINEAGE_PLAIN>>>:${_looked_at}>")
    target_link_options(klineage-options INTERFACE ${_sanitizers})
endif()
find_package(Threads REQUIRED)
target_link_libraries(klineage-options INTERFACE Threads::Threads ${CMAKE_DL_LIBS})

if(KLINEAGE_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # -fpch-preprocess lets ccache look through a precompiled header; -fPIC lets programs share the one of the libraries. A
    # target whose own macros do not fit the shared header reads the plain one: slower, not wrong.
    target_compile_options(klineage-options INTERFACE -fpch-preprocess -fPIC)
    set(CMAKE_PCH_WARN_INVALID OFF)
endif()

if(KLINEAGE_UNITY)
    # A dozen sources in one go: a third of the time for all of it, more for one change. See _klineage_batch in KLineageRooms.cmake.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        # Takes each source of a batch for a header.
        target_compile_options(klineage-options INTERFACE -Wno-subobject-linkage)
    endif()
endif()

if(KLINEAGE_BUILD_TESTS AND NOT CMAKE_SYSROOT AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
        AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1)
    # Hundreds of test programs are linked: mold does in a tenth of a second what the default linker takes a second for.
    find_program(KLINEAGE_MOLD mold)
    mark_as_advanced(KLINEAGE_MOLD)
    if(KLINEAGE_MOLD)
        target_link_options(klineage-options INTERFACE -fuse-ld=mold)
    endif()
endif()

find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
        CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 ${CCACHE_PROGRAM})
endif()
