// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <utility>

namespace klineage::gate {

/// Owns one object of a driver; Release is the member of Api that lets it go, whose result nobody can act upon. The Api outlives it.
template <typename Api, typename Object, auto Release>
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
        , m_object(std::exchange(other.m_object, Object()))
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
    [[nodiscard]] explicit operator bool() const { return m_object != Object(); }

private:
    const Api *m_api = nullptr;
    Object m_object = Object();
};

} // namespace klineage::gate
