# SPDX-License-Identifier: GPL-3.0-or-later
# CUDA headers for code that loads every CUDA library at run time: nothing is linked.
# Gives klineage::dep-cuda (include folder; empty when there are no headers), KLINEAGE_CUDA_INCLUDE_DIR and
# KLINEAGE_HAVE_CUDA, KLINEAGE_HAVE_CUPTI, KLINEAGE_HAVE_NVML (0 or 1).
set(_roots ${CUDA_PATH} $ENV{CUDA_PATH} $ENV{CUDA_HOME} /usr/local/cuda /opt/cuda)
set(_suffixes include targets/x86_64-linux/include targets/sbsa-linux/include)

find_path(KLINEAGE_CUDA_INCLUDE_DIR cuda.h PATHS ${_roots} PATH_SUFFIXES ${_suffixes} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
find_path(KLINEAGE_NVRTC_INCLUDE_DIR nvrtc.h PATHS ${_roots} PATH_SUFFIXES ${_suffixes} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
find_path(KLINEAGE_CUPTI_INCLUDE_DIR cupti.h PATHS ${_roots}
    PATH_SUFFIXES ${_suffixes} extras/CUPTI/include NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
find_path(KLINEAGE_NVML_INCLUDE_DIR nvml.h PATHS ${_roots} PATH_SUFFIXES ${_suffixes} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
mark_as_advanced(KLINEAGE_CUDA_INCLUDE_DIR KLINEAGE_NVRTC_INCLUDE_DIR KLINEAGE_CUPTI_INCLUDE_DIR
    KLINEAGE_NVML_INCLUDE_DIR)

add_library(klineage-dep-cuda INTERFACE)
add_library(klineage::dep-cuda ALIAS klineage-dep-cuda)
foreach(_feature CUDA CUPTI NVML)
    set(KLINEAGE_HAVE_${_feature} 0)
endforeach()
if(KLINEAGE_CUDA_INCLUDE_DIR AND KLINEAGE_NVRTC_INCLUDE_DIR)
    set(KLINEAGE_HAVE_CUDA 1)
    target_include_directories(klineage-dep-cuda SYSTEM INTERFACE ${KLINEAGE_CUDA_INCLUDE_DIR})
    foreach(_feature CUPTI NVML)
        if(KLINEAGE_${_feature}_INCLUDE_DIR)
            set(KLINEAGE_HAVE_${_feature} 1)
            target_include_directories(klineage-dep-cuda SYSTEM INTERFACE ${KLINEAGE_${_feature}_INCLUDE_DIR})
        endif()
    endforeach()
endif()
set(KLineageCuda_FOUND ${KLINEAGE_HAVE_CUDA})
