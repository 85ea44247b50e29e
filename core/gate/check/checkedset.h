// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/bufferimage.h"
#include "core/gate/check/comparison.h"
#include "core/gate/check/outputjudge.h"
#include "core/gate/oracle/devicejudge.h"
#include "core/gate/session/workersession.h"

#include <variant>

namespace klineage::gate {

/// Something that a launch must not have done.
struct Finding {
    enum class Kind { RedZone, InputChanged, Mismatch };
    Kind kind = Kind::Mismatch;
    std::string buffer; ///< tensor or workspace
    BufferKind bufferKind = BufferKind::Output;
    RedZoneHit redZone;            ///< RedZone
    std::string element;           ///< "c[3, 17]": of InputChanged and Mismatch
    OutputCheck check;             ///< Mismatch
    workload::Tolerance tolerance; ///< Mismatch
};

[[nodiscard]] BufferLayout layoutOf(const HostTensor &tensor);

/// What a launch did to one buffer that it must not have done. tensor: nullptr for a workspace. judge: of this launch. poison: what an
/// output held before.
[[nodiscard]] std::optional<Finding> judgeBuffer(const BufferLayout &layout, std::uint64_t key,
                                                 const HostTensor *tensor, OutputJudge &judge,
                                                 std::span<const std::byte> image, PoisonImage poison);

/// What is looked at after a launch.
enum class Look {
    Everything,
    ForNow, ///< another launch on the same buffers follows, after which everything is looked at: large inputs wait until then
};

/// The buffers of one case instance on the device: every tensor, and the workspaces of each plan that will run on it, all between
/// red zones. The session must outlive it; the buffers are released with release() (or die with the worker).
class CheckedSet
{
public:
    /// What the judge opens is filled and looked at where it lies.
    CheckedSet(WorkerSession &session, CaseInstancePtr instance, DeviceJudge *judge = nullptr);

    [[nodiscard]] WorkerResult<void> allocateTensors();
    /// Allocates the workspaces of a plan and returns the names that it sees.
    [[nodiscard]] WorkerResult<BufferSet> addPlan(const kernel::ResolvedPlan &plan);
    /// Uploads everything afresh: inputs, poisoned outputs and workspaces, red zones under new keys. Large inputs (32 MiB) that are
    /// there already stay as the launch before left them, until inspect() finds them changed.
    [[nodiscard]] WorkerResult<void> arm(Fill fill);
    /// Downloads everything and looks at every byte: red zones, inputs, outputs. The worst finding first; nothing when all is well.
    [[nodiscard]] WorkerResult<std::optional<Finding>> inspect(Look look = Look::Everything);
    /// errorBeforeRounding() of the outputs that inspect() looked at last, all of which were right, where the content tells it.
    [[nodiscard]] const Precision &precision() const { return m_precision; }
    [[nodiscard]] WorkerResult<void> release();

    [[nodiscard]] const CaseInstance &instance() const { return *m_instance; }
    /// The tensors alone.
    [[nodiscard]] const BufferSet &tensorBindings() const { return m_tensorBindings; }
    /// Device bytes of the tensors of an instance, red zones included.
    [[nodiscard]] static std::size_t tensorBytes(const CaseInstance &instance);

private:
    struct Buffer {
        BufferLayout layout;
        BufferId id = 0;
        std::uint64_t key = 0;
        const HostTensor *tensor = nullptr; ///< nullptr: a workspace
        RawBytes poison;                    ///< what an output was filled with
        DeviceJudge::OpenedPtr opened{};
        bool armedThere = false; ///< by the judge, under the key; `poison` is not made
    };
    [[nodiscard]] WorkerResult<BufferBinding> allocate(BufferLayout layout, const HostTensor *tensor);

    [[nodiscard]] WorkerResult<void> upload(Buffer &buffer, Fill fill);
    [[nodiscard]] WorkerResult<std::optional<Finding>> inspect(Buffer &buffer, OutputJudge &judge);

    WorkerSession &m_session;
    CaseInstancePtr m_instance;
    DeviceJudge *m_judge;
    Fill m_fill = Fill::Nan; ///< of the last arm()
    Precision m_precision;
    std::vector<Buffer> m_buffers;
    BufferSet m_tensorBindings;
};

} // namespace klineage::gate
