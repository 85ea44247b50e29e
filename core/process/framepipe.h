// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/filedescriptor.h"
#include "core/process/deadline.h"
#include "core/process/framereader.h"

#include <stop_token>

namespace klineage::process {

class ChildProcess;

/// Frames over a connected stream socket. After any error the pipe is broken and every call repeats it. One thread.
class FramePipe
{
public:
    FramePipe() = default;
    explicit FramePipe(FileDescriptor socket, std::size_t limitBytes = maxFrameBytes);

    /// While it waits, the child's output is drained, so that a chatty child cannot block itself. child may be nullptr.
    [[nodiscard]] Status send(const nlohmann::json &message, Deadline deadline,
                              ChildProcess *child = nullptr);
    /// ErrorCode::Timeout, Cancelled, or Protocol (bad frame; "ended" when the peer closed, cut when inside a frame).
    [[nodiscard]] Result<nlohmann::json> receive(Deadline deadline, ChildProcess *child = nullptr,
                                                 const std::stop_token &stop = {});
    /// False when bytes have arrived that no receive() returned: of a half-read frame, or of one that nobody asked for.
    [[nodiscard]] bool quiet() const;
    /// True when the peer closed its end, which a process that died does.
    [[nodiscard]] bool ended() const { return m_ended; }
    /// True when it ended inside a message.
    [[nodiscard]] bool cut() const { return m_ended && !m_reader.atBoundary(); }

private:
    [[nodiscard]] Status broken(Error error);
    [[nodiscard]] Status endOfStream();
    [[nodiscard]] Result<bool> readSome(); ///< false: nothing there yet

    FileDescriptor m_socket;
    FrameReader m_reader;
    std::optional<Error> m_error;
    bool m_ended = false;
};

} // namespace klineage::process
