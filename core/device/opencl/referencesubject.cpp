// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/opencl/subject.h"

#include <chrono>

namespace klineage::gate::opencl {

namespace {

/// One mapped buffer; unmapped on destruction.
class Mapping
{
public:
    Mapping(const Api &api, cl_command_queue queue, cl_mem buffer, void *address)
        : m_api(&api)
        , m_queue(queue)
        , m_buffer(buffer)
        , m_address(address)
    {}
    Mapping(Mapping &&other) noexcept
        : m_api(other.m_api)
        , m_queue(other.m_queue)
        , m_buffer(other.m_buffer)
        , m_address(std::exchange(other.m_address, nullptr))
    {}
    Mapping &operator=(Mapping &&) = delete;
    ~Mapping()
    {
        if (!m_address)
            return;
        m_api->clEnqueueUnmapMemObject(m_queue, m_buffer, m_address, 0, nullptr, nullptr);
        m_api->clFinish(m_queue);
    }

private:
    const Api *m_api;
    cl_command_queue m_queue;
    cl_mem m_buffer;
    void *m_address;
};

class ReferenceSubject : public Subject
{
public:
    ReferenceSubject(const Device &device, cl_command_queue queue, std::unique_ptr<CpuReference> reference,
                     std::map<std::string, std::string> roles, std::vector<RegionSet> sets)
        : m_api(*device.api)
        , m_queue(queue)
        , m_reference(std::move(reference))
        , m_roles(std::move(roles))
        , m_sets(std::move(sets))
    {}
    Result<double> run(const std::vector<std::size_t> &sets, const Between &between) override;
    std::size_t setCount() const override { return m_sets.size(); }
    void rebind(std::vector<RegionSet> sets) override { m_sets = std::move(sets); }
    std::string version() const override { return m_reference->version(); }

private:
    Result<HostBuffers> map(std::size_t set, std::vector<Mapping> &mappings);

    const Api &m_api;
    cl_command_queue m_queue;
    std::unique_ptr<CpuReference> m_reference;
    std::map<std::string, std::string> m_roles; ///< role -> buffer name
    std::vector<RegionSet> m_sets;
};

Result<HostBuffers> ReferenceSubject::map(std::size_t set, std::vector<Mapping> &mappings)
{
    HostBuffers buffers;
    for (const auto &[role, name] : m_roles) {
        const auto region = m_sets[set].find(name);
        if (region == m_sets[set].end())
            return fail(ErrorCode::InvalidInput,
                        "Cannot bind the reference: there is no buffer named " + name + ".");
        cl_int code = CL_SUCCESS;
        void *address =
            m_api.clEnqueueMapBuffer(m_queue, region->second.buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                     region->second.bufferBytes, 0, nullptr, nullptr, &code);
        if (auto mapped = check(code, "map buffer " + name + " for the reference"); !mapped)
            return tl::unexpected(mapped.error());
        mappings.emplace_back(m_api, m_queue, region->second.buffer, address);
        buffers[role] = static_cast<std::byte *>(address) + region->second.offsetBytes;
    }
    return buffers;
}

Result<double> ReferenceSubject::run(const std::vector<std::size_t> &sets, const Between &between)
{
    std::vector<Mapping> mappings;
    std::map<std::size_t, HostBuffers> bound;
    for (const std::size_t set : sets) {
        if (bound.contains(set))
            continue;
        auto buffers = map(set, mappings);
        if (!buffers)
            return tl::unexpected(buffers.error());
        bound[set] = std::move(*buffers);
    }
    using Clock = std::chrono::steady_clock;
    double ns = 0;
    for (std::size_t i = 0; i < sets.size(); ++i) {
        if (between && i > 0) {
            if (auto done = between(); !done)
                return tl::unexpected(done.error());
            if (auto done = check(m_api.clFinish(m_queue), "finish what lies between two runs"); !done)
                return tl::unexpected(done.error());
        }
        const auto begin = Clock::now();
        if (auto done = m_reference->run(bound[sets[i]]); !done)
            return tl::unexpected(done.error());
        ns += std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    }
    return ns;
}

} // namespace

std::unique_ptr<Subject> makeReferenceSubject(const Device &device, cl_command_queue queue,
                                              std::unique_ptr<CpuReference> reference,
                                              std::map<std::string, std::string> roles,
                                              std::vector<RegionSet> sets)
{
    return std::make_unique<ReferenceSubject>(device, queue, std::move(reference), std::move(roles),
                                              std::move(sets));
}

} // namespace klineage::gate::opencl
