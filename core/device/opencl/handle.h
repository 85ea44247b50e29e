// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/opencl/loader.h"

#include <utility>

namespace klineage::gate::opencl {

/// Owns one OpenCL object; Release is the member of Api that lets it go.
template <typename Object, auto Release>
class Handle
{
public:
    Handle() = default;
    Handle(const Api &api, Object object)
        : m_api(&api)
        , m_object(object)
    {}
    Handle(Handle &&other) noexcept
        : m_api(other.m_api)
        , m_object(std::exchange(other.m_object, nullptr))
    {}
    Handle &operator=(Handle &&other) noexcept
    {
        std::swap(m_api, other.m_api);
        std::swap(m_object, other.m_object);
        return *this;
    }
    ~Handle()
    {
        if (m_object)
            (m_api->*Release)(m_object);
    }
    [[nodiscard]] Object get() const { return m_object; }
    [[nodiscard]] explicit operator bool() const { return m_object != nullptr; }

private:
    const Api *m_api = nullptr;
    Object m_object = nullptr;
};

using Context = Handle<cl_context, &Api::clReleaseContext>;
using Queue = Handle<cl_command_queue, &Api::clReleaseCommandQueue>;
using Memory = Handle<cl_mem, &Api::clReleaseMemObject>;
using Program = Handle<cl_program, &Api::clReleaseProgram>;
using Kernel = Handle<cl_kernel, &Api::clReleaseKernel>;
using Event = Handle<cl_event, &Api::clReleaseEvent>;

} // namespace klineage::gate::opencl
