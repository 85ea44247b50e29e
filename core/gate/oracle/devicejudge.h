// SPDX-License-Identifier: GPL-3.0-or-later
//
// Buffers of the worker that runs a candidate, filled and looked at from the trusted process: it opens them as they lie in the device's
// memory, so that nothing of them travels. What it finds is added up to a few numbers, which the supervisor judges. Only where
// all is well: what is wrong is downloaded and told by the CPU, which looks at every byte again. Where a device or a system does not
// let a process open another one's memory, and for what is small or has no instance on the device, the CPU does it all.
#pragma once

#include "core/gate/check/bufferimage.h"
#include "core/gate/check/caseinstance.h"
#include "core/gate/check/comparison.h"
#include "core/gate/oracle/devicecontent.h"

namespace klineage::gate {

/// What a kernel of the judge says of 65,536 elements.
struct ComparedBlock {
    double errorSquares = 0;
    double expectedSquares = 0;
    double unroundedSquares = 0;
    double largestError = 0;
    std::int64_t mismatches = 0;
    std::int64_t first = 0;
};
[[nodiscard]] ComparisonTotals totalsOf(std::span<const ComparedBlock> blocks);

class DeviceJudge
{
public:
    static constexpr std::size_t leastBytes = std::size_t{4} << 20; ///< of a buffer that is worth it

    /// A buffer that is open. Closed when it goes, which has to be before the worker lets it go.
    class Opened
    {
    public:
        Opened(std::shared_ptr<TrustedDevice> device, BufferId id, std::uint64_t generation)
            : m_device(std::move(device))
            , m_id(id)
            , m_generation(generation)
        {}
        ~Opened() { m_device->release(m_id, m_generation); }
        Opened(const Opened &) = delete;
        Opened &operator=(const Opened &) = delete;
        [[nodiscard]] BufferId id() const { return m_id; }
        [[nodiscard]] std::uint64_t generation() const { return m_generation; }

    private:
        std::shared_ptr<TrustedDevice> m_device;
        BufferId m_id;
        std::uint64_t m_generation;
    };
    using OpenedPtr = std::shared_ptr<const Opened>;

    explicit DeviceJudge(std::shared_ptr<TrustedDevice> device)
        : m_device(std::move(device))
    {}
    /// wanted: whether it is to be used at all.
    void beginTrial(bool wanted, std::stop_token stop);

    /// A worker's buffer that holds one or more images of the instance; nullptr when the CPU has to do it.
    [[nodiscard]] OpenedPtr open(WorkerSession &worker, BufferId buffer, std::size_t bytes,
                                 const CaseInstance &instance);
    /// Writes an image: red zones under the key, and an input's content or poison. False: nothing useful was written.
    [[nodiscard]] bool arm(const Opened &buffer, std::size_t at, const BufferLayout &layout,
                           std::uint64_t key, const CaseInstance &instance, Fill fill);
    /// Writes an input's content.
    [[nodiscard]] bool copy(const Opened &buffer, std::size_t at, const CaseInstance &instance,
                            const std::string &tensor);
    /// Looks at every byte of an image. True: all is well. False: it is not, or that could not be found out.
    [[nodiscard]] bool isRight(const Opened &buffer, std::size_t at, const BufferLayout &layout,
                               std::uint64_t key, const CaseInstance &instance);

    /// errorBeforeRounding() of the output that it looked at last.
    [[nodiscard]] double beforeRounding() const { return m_beforeRounding; }

    /// "device: 24 buffers looked at", "cpu: …"; empty where nothing was large enough.
    [[nodiscard]] std::string summary() const;

private:
    [[nodiscard]] bool works(const Status &status);
    [[nodiscard]] bool isUsable(const Opened &buffer) const;
    [[nodiscard]] Result<WorkerSession *> session();
    [[nodiscard]] Result<BufferId> scratch(WorkerSession &session, std::size_t bytes);
    [[nodiscard]] Status writeZones(WorkerSession &session, const Opened &buffer, std::size_t at,
                                    const BufferLayout &layout, std::uint64_t key);
    [[nodiscard]] Status poisonContent(const Opened &buffer, std::size_t at, const BufferLayout &layout,
                                       std::uint64_t key, Fill fill);
    [[nodiscard]] Result<bool> zonesAreRight(WorkerSession &session, const Opened &buffer, std::size_t at,
                                             const BufferLayout &layout, std::uint64_t key);
    [[nodiscard]] Result<bool> inputIsRight(WorkerSession &session, const Opened &buffer, std::size_t at,
                                            const BufferLayout &layout, BufferId content);
    [[nodiscard]] Result<bool> outputIsRight(WorkerSession &session, const Opened &buffer, std::size_t at,
                                             const BufferLayout &layout, const CaseInstance &instance);

    std::shared_ptr<TrustedDevice> m_device;
    std::stop_token m_stop;
    bool m_wanted = false;
    std::string m_why; ///< why the CPU has to do it from here on
    std::size_t m_looks = 0;
    double m_beforeRounding = 0;
    std::optional<BufferId> m_scratch;
    std::size_t m_scratchBytes = 0;
    std::uint64_t m_scratchOf = 0; ///< generation
};

} // namespace klineage::gate
