// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/opencl/standin.h"
#include "core/device/opencl/subject.h"

#include <algorithm>

namespace klineage::gate::opencl {

namespace {

constexpr int dimensions = 3;

/// One [[launch]]: its kernel with all arguments set, once for every buffer set.
struct PreparedLaunch {
    kernel::ResolvedLaunch launch;
    std::array<std::size_t, dimensions> global{};
    std::array<std::size_t, dimensions> local{};
    std::vector<Kernel> kernels; ///< one a set
    std::vector<Metric> metrics;
};

struct ZeroFill {
    std::string workspace;
    std::size_t bytes = 0;
};

class PlanSubject : public Subject
{
public:
    PlanSubject(const Device &device, cl_command_queue queue, std::vector<RegionSet> sets)
        : m_device(device)
        , m_api(*device.api)
        , m_queue(queue)
        , m_sets(std::move(sets))
    {}
    Status prepare(cl_program program, const kernel::ResolvedPlan &plan);
    Result<double> run(const std::vector<std::size_t> &sets, const Between &between) override;
    std::size_t localBytes() const override { return m_localBytes; }
    Status runInOrder(std::size_t set, std::uint64_t key) override;
    Status prime() override;
    std::size_t setCount() const override { return m_sets.size(); }
    std::vector<Metric> metrics() const override;

private:
    Result<PreparedLaunch> prepareLaunch(cl_program program, const kernel::ResolvedLaunch &launch);
    Status bind(PreparedLaunch &prepared, cl_program program, std::size_t set);
    Status setArgument(cl_kernel kernel, cl_uint index, const kernel::ResolvedArg &argument, std::size_t set,
                       const std::string &where);
    Status checkKind(cl_kernel kernel, cl_uint index, const kernel::ResolvedArg &argument,
                     const std::string &where) const;
    Status checkLimits(PreparedLaunch &prepared);
    Result<cl_mem> viewOf(const std::string &name, std::size_t set);
    Status clearWorkspaces(std::size_t set, std::vector<Event> &events);
    Status launch(const PreparedLaunch &prepared, std::size_t set, std::vector<Event> &events);
    Status enqueue(std::size_t set, std::vector<Event> &events);
    Result<double> timeOf(const std::vector<Event> &events) const;

    Device m_device;
    const Api &m_api;
    cl_command_queue m_queue;
    std::vector<RegionSet> m_sets;
    std::vector<std::map<std::string, Memory>> m_views; ///< sub-buffers that begin after the red zone, by set
    std::vector<ZeroFill> m_zeroFills;
    std::vector<PreparedLaunch> m_launches;
    std::size_t m_localBytes = 0;
};

Result<cl_mem> PlanSubject::viewOf(const std::string &name, std::size_t set)
{
    auto &views = m_views[set];
    if (const auto known = views.find(name); known != views.end())
        return known->second.get();
    const auto region = m_sets[set].find(name);
    if (region == m_sets[set].end())
        return fail(ErrorCode::InvalidInput, "Cannot bind the plan: there is no buffer named " + name + ".");
    const cl_buffer_region part{region->second.offsetBytes,
                                region->second.bufferBytes - region->second.offsetBytes};
    cl_int code = CL_SUCCESS;
    Memory view(m_api, m_api.clCreateSubBuffer(region->second.buffer, CL_MEM_READ_WRITE,
                                               CL_BUFFER_CREATE_TYPE_REGION, &part, &code));
    if (auto made = check(code, "make a view of buffer " + name); !made)
        return tl::unexpected(made.error());
    return views.emplace(name, std::move(view)).first->second.get();
}

Status PlanSubject::checkKind(cl_kernel kernel, cl_uint index, const kernel::ResolvedArg &argument,
                              const std::string &where) const
{
    cl_kernel_arg_address_qualifier qualifier = 0;
    if (m_api.clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof qualifier, &qualifier,
                                 nullptr)
        != CL_SUCCESS)
        return {}; // not every implementation keeps argument information
    const bool pointer =
        qualifier == CL_KERNEL_ARG_ADDRESS_GLOBAL || qualifier == CL_KERNEL_ARG_ADDRESS_CONSTANT;
    const bool local = qualifier == CL_KERNEL_ARG_ADDRESS_LOCAL;
    const bool wantsPointer = std::holds_alternative<kernel::PointerValue>(argument);
    const bool wantsLocal = std::holds_alternative<kernel::LocalValue>(argument);
    if (pointer == wantsPointer && local == wantsLocal)
        return {};
    const char *takes = pointer ? "a global pointer" : local ? "a local pointer" : "a value";
    const char *gets = wantsPointer ? "a tensor" : wantsLocal ? "local memory" : "a scalar";
    return fail(ErrorCode::InvalidInput,
                "Cannot launch " + where + ": the kernel takes " + takes + ", the plan passes " + gets + ".");
}

Status PlanSubject::setArgument(cl_kernel kernel, cl_uint index, const kernel::ResolvedArg &argument,
                                std::size_t set, const std::string &where)
{
    if (auto fits = checkKind(kernel, index, argument, where); !fits)
        return fits;
    cl_int code = CL_SUCCESS;
    if (const auto *pointer = std::get_if<kernel::PointerValue>(&argument)) {
        const auto view = viewOf(pointer->buffer, set);
        if (!view)
            return tl::unexpected(view.error());
        const cl_mem memory = *view;
        code = m_api.clSetKernelArg(kernel, index, sizeof memory, &memory);
    } else if (const auto *scalar = std::get_if<kernel::ScalarValue>(&argument)) {
        code = m_api.clSetKernelArg(kernel, index, scalar->size, scalar->bytes.data());
    } else if (const auto *local = std::get_if<kernel::LocalValue>(&argument)) {
        code = m_api.clSetKernelArg(kernel, index, static_cast<std::size_t>(local->bytes), nullptr);
    } else {
        return fail(ErrorCode::InvalidInput, "Cannot launch " + where + ": tensor maps are for CUDA only.");
    }
    if (code == CL_INVALID_ARG_SIZE)
        return fail(ErrorCode::InvalidInput,
                    "Cannot launch " + where
                        + ": the value in the plan does not have the size of the kernel's parameter.");
    if (code == CL_SUCCESS)
        return {};
    auto error = describe(code, "set " + where);
    error.code = ErrorCode::InvalidInput;
    return tl::unexpected(error);
}

Status PlanSubject::bind(PreparedLaunch &prepared, cl_program program, std::size_t set)
{
    const auto &launch = prepared.launch;
    cl_int code = CL_SUCCESS;
    Kernel kernel(m_api, m_api.clCreateKernel(program, launch.kernel.c_str(), &code));
    if (code == CL_INVALID_KERNEL_NAME)
        return fail(ErrorCode::InvalidInput,
                    "Cannot find kernel " + launch.kernel + " in the compiled source; the plan launches it.");
    if (auto made = check(code, "create kernel " + launch.kernel); !made)
        return made;
    cl_uint count = 0;
    m_api.clGetKernelInfo(kernel.get(), CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr);
    if (count != launch.args.size())
        return fail(ErrorCode::InvalidInput, "Cannot launch " + launch.kernel + ": the plan passes "
                                                 + std::to_string(launch.args.size())
                                                 + " arguments, the kernel takes " + std::to_string(count)
                                                 + ".");
    for (cl_uint i = 0; i < count; ++i) {
        const std::string where = launch.kernel + ", argument " + std::to_string(i + 1);
        if (auto bound = setArgument(kernel.get(), i, launch.args[i], set, where); !bound)
            return bound;
    }
    prepared.kernels.push_back(std::move(kernel));
    return {};
}

Status PlanSubject::checkLimits(PreparedLaunch &prepared)
{
    const auto &launch = prepared.launch;
    const cl_kernel kernel = prepared.kernels.front().get();
    std::size_t workGroupLimit = m_device.maxWorkGroup;
    std::size_t multiple = 0;
    cl_ulong localBytes = 0;
    cl_ulong privateBytes = 0;
    const auto ask = [&](cl_kernel_work_group_info what, auto &value) {
        m_api.clGetKernelWorkGroupInfo(kernel, m_device.id, what, sizeof value, &value, nullptr);
    };
    ask(CL_KERNEL_WORK_GROUP_SIZE, workGroupLimit);
    ask(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, multiple);
    ask(CL_KERNEL_LOCAL_MEM_SIZE, localBytes);
    ask(CL_KERNEL_PRIVATE_MEM_SIZE, privateBytes);
    std::size_t items = 1;
    std::size_t groups = 1;
    for (std::size_t i = 0; i < dimensions; ++i) {
        items *= prepared.local[i];
        groups *= static_cast<std::size_t>(launch.grid[i]);
        if (prepared.local[i] > m_device.maxWorkItems[i])
            return fail(ErrorCode::InvalidInput,
                        "Cannot launch " + launch.kernel + ": " + std::to_string(prepared.local[i])
                            + " work-items in dimension " + std::to_string(i) + ", the device allows "
                            + std::to_string(m_device.maxWorkItems[i]) + ".");
    }
    if (items > workGroupLimit)
        return fail(ErrorCode::InvalidInput, "Cannot launch " + launch.kernel + ": a work-group of "
                                                 + std::to_string(items) + " work-items, the device allows "
                                                 + std::to_string(workGroupLimit) + ".");
    if (localBytes > m_device.localBytes)
        return fail(ErrorCode::InvalidInput, "Cannot launch " + launch.kernel + ": "
                                                 + std::to_string(localBytes)
                                                 + " bytes of local memory, the device has "
                                                 + std::to_string(m_device.localBytes) + ".");
    // Not every implementation counts what arguments ask for.
    std::size_t asked = static_cast<std::size_t>(localBytes);
    for (const kernel::ResolvedArg &argument : launch.args) {
        if (const auto *local = std::get_if<kernel::LocalValue>(&argument))
            asked += static_cast<std::size_t>(local->bytes);
    }
    m_localBytes = std::max(m_localBytes, asked);
    prepared.metrics = {{"work_groups", static_cast<double>(groups), "", launch.kernel},
                        {"work_group_size", static_cast<double>(items), "", launch.kernel},
                        {"local_mem", static_cast<double>(localBytes), "B", launch.kernel},
                        {"private_mem", static_cast<double>(privateBytes), "B", launch.kernel},
                        {"preferred_multiple", static_cast<double>(multiple), "", launch.kernel}};
    return {};
}

Result<PreparedLaunch> PlanSubject::prepareLaunch(cl_program program, const kernel::ResolvedLaunch &launch)
{
    PreparedLaunch prepared;
    prepared.launch = launch;
    if (launch.sharedBytes > 0 || launch.cooperative || launch.programmaticDependent
        || std::any_of(launch.cluster.begin(), launch.cluster.end(), [](auto extent) { return extent > 1; }))
        return fail(
            ErrorCode::InvalidInput,
            "Cannot launch " + launch.kernel
                + ": shared, cluster, cooperative and pdl are for CUDA; use `local BYTES` arguments.");
    for (std::size_t i = 0; i < dimensions; ++i) {
        prepared.local[i] = static_cast<std::size_t>(launch.block[i]);
        prepared.global[i] = static_cast<std::size_t>(launch.grid[i]) * prepared.local[i];
    }
    for (std::size_t set = 0; set < m_sets.size(); ++set) {
        if (auto bound = bind(prepared, program, set); !bound)
            return tl::unexpected(bound.error());
    }
    if (auto fits = checkLimits(prepared); !fits)
        return tl::unexpected(fits.error());
    return prepared;
}

Status PlanSubject::prepare(cl_program program, const kernel::ResolvedPlan &plan)
{
    m_views.resize(m_sets.size());
    for (const auto &workspace : plan.workspaces) {
        if (workspace.init == kernel::WorkspaceInit::Zero)
            m_zeroFills.push_back({workspace.name, static_cast<std::size_t>(workspace.bytes())});
    }
    for (const auto &launch : plan.launches) {
        auto prepared = prepareLaunch(program, launch);
        if (!prepared)
            return tl::unexpected(prepared.error());
        m_launches.push_back(std::move(*prepared));
    }
    return {};
}

Status PlanSubject::clearWorkspaces(std::size_t set, std::vector<Event> &events)
{
    for (const ZeroFill &fill : m_zeroFills) {
        const Region &region = m_sets[set].at(fill.workspace);
        const cl_uchar zero = 0;
        cl_event event = nullptr;
        const cl_int code = m_api.clEnqueueFillBuffer(m_queue, region.buffer, &zero, sizeof zero,
                                                      region.offsetBytes, fill.bytes, 0, nullptr, &event);
        if (auto done = check(code, "clear workspace " + fill.workspace); !done)
            return done;
        events.emplace_back(m_api, event);
    }
    return {};
}

Status PlanSubject::launch(const PreparedLaunch &prepared, std::size_t set, std::vector<Event> &events)
{
    cl_event event = nullptr;
    const cl_int code =
        m_api.clEnqueueNDRangeKernel(m_queue, prepared.kernels[set].get(), dimensions, nullptr,
                                     prepared.global.data(), prepared.local.data(), 0, nullptr, &event);
    if (auto done = check(code, "launch kernel " + prepared.launch.kernel); !done)
        return done;
    events.emplace_back(m_api, event);
    return {};
}

Status PlanSubject::enqueue(std::size_t set, std::vector<Event> &events)
{
    if (auto cleared = clearWorkspaces(set, events); !cleared)
        return cleared;
    for (const PreparedLaunch &prepared : m_launches) {
        if (auto launched = launch(prepared, set, events); !launched)
            return launched;
    }
    return {};
}

Status PlanSubject::runInOrder(std::size_t set, std::uint64_t key)
{
    std::vector<Event> events;
    if (auto cleared = clearWorkspaces(set, events); !cleared)
        return cleared;
    Status done = check(m_api.clFinish(m_queue), "clear workspaces");
    for (const PreparedLaunch &prepared : m_launches) {
        if (!done)
            return done;
        std::array<std::size_t, dimensions> groups{};
        for (std::size_t i = 0; i < groups.size(); ++i)
            groups[i] = prepared.global[i] / prepared.local[i];
        const StandInsInOrder order(groups, key);
        if (auto launched = launch(prepared, set, events); !launched)
            return launched;
        done = check(m_api.clFinish(m_queue), "finish the kernel");
    }
    return done;
}

/// From the start of the first to the end of the last. The queue is in order, so this spans all of them and what lies between.
Result<double> PlanSubject::timeOf(const std::vector<Event> &events) const
{
    cl_ulong begin = 0;
    cl_ulong end = 0;
    cl_int code = m_api.clGetEventProfilingInfo(events.front().get(), CL_PROFILING_COMMAND_START,
                                                sizeof begin, &begin, nullptr);
    if (code == CL_SUCCESS)
        code = m_api.clGetEventProfilingInfo(events.back().get(), CL_PROFILING_COMMAND_END, sizeof end, &end,
                                             nullptr);
    if (auto read = check(code, "read the launch's timing events"); !read)
        return tl::unexpected(read.error());
    return end > begin ? static_cast<double>(end - begin) : 1.0;
}

Result<double> PlanSubject::run(const std::vector<std::size_t> &sets, const Between &between)
{
    double ns = 0;
    std::vector<Event> events;
    // What a run took is read before the next one begins, which could change what is told of it.
    const auto finish = [&]() -> Status {
        if (auto finished = check(m_api.clFinish(m_queue), "finish the kernel"); !finished)
            return finished;
        const auto taken = timeOf(events);
        if (!taken)
            return tl::unexpected(taken.error());
        ns += *taken;
        events.clear();
        return {};
    };
    for (const std::size_t set : sets) {
        Status done;
        if (between && !events.empty()) {
            done = finish();
            if (done)
                done = between();
        }
        if (done)
            done = enqueue(set, events);
        if (!done) {
            m_api.clFinish(m_queue);
            return tl::unexpected(done.error());
        }
    }
    if (auto finished = finish(); !finished)
        return tl::unexpected(finished.error());
    return ns;
}

Status PlanSubject::prime()
{
    const StandInsAsleep asleep;
    for (const PreparedLaunch &prepared : m_launches) {
        const std::size_t before = standInCount();
        const cl_int code =
            m_api.clEnqueueNDRangeKernel(m_queue, prepared.kernels.front().get(), dimensions, nullptr,
                                         prepared.global.data(), prepared.local.data(), 0, nullptr, nullptr);
        if (auto done = check(code, "compile kernel " + prepared.launch.kernel); !done)
            return done;
        if (auto done = check(m_api.clFinish(m_queue), "compile kernel " + prepared.launch.kernel); !done)
            return done;
        if (before == 0 && standInCount() == 0)
            return fail(ErrorCode::Internal,
                        "PoCL looks its kernels up in another way than this program knows.");
    }
    return {};
}

std::vector<Metric> PlanSubject::metrics() const
{
    std::vector<Metric> all;
    for (const PreparedLaunch &prepared : m_launches)
        all.insert(all.end(), prepared.metrics.begin(), prepared.metrics.end());
    return all;
}

} // namespace

Result<std::unique_ptr<Subject>> makePlanSubject(const Device &device, cl_command_queue queue,
                                                 cl_program program, const kernel::ResolvedPlan &plan,
                                                 const std::vector<RegionSet> &sets)
{
    auto subject = std::make_unique<PlanSubject>(device, queue, sets);
    if (auto prepared = subject->prepare(program, plan); !prepared)
        return tl::unexpected(prepared.error());
    return std::unique_ptr<Subject>(std::move(subject));
}

} // namespace klineage::gate::opencl
