// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/handle.h"
#include "core/device/opencl/loader.h"

namespace klineage::gate::opencl {

using Context = Handle<Api, cl_context, &Api::clReleaseContext>;
using Queue = Handle<Api, cl_command_queue, &Api::clReleaseCommandQueue>;
using Memory = Handle<Api, cl_mem, &Api::clReleaseMemObject>;
using Program = Handle<Api, cl_program, &Api::clReleaseProgram>;
using Kernel = Handle<Api, cl_kernel, &Api::clReleaseKernel>;
using Event = Handle<Api, cl_event, &Api::clReleaseEvent>;

} // namespace klineage::gate::opencl
