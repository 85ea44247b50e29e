// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/highlight/jobslot.h"
#include "ui/machine/coderequest.h"

#include <QObject>

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace klineage::ui {

/// Both sides of a step; a side that is not wanted is empty.
using CodeRequests = std::array<std::optional<CodeRequest>, 2>;

/// Reads the machine code that trials kept, or makes it in the gate's compiler process, on worker threads. What was made is kept in
/// memory by the candidate's sha-256. Lives on the GUI thread.
class CodeLoader : public QObject
{
    Q_OBJECT

public:
    explicit CodeLoader(QObject *parent = nullptr);
    ~CodeLoader() override;

    /// Program and arguments of the compiler process; none: `klineage-gate compile`, as it is found.
    void setCompiler(std::vector<std::string> command);

    /// arrived() follows for each side that is wanted, then finished(); a later call replaces this one.
    void load(const CodeRequests &requests);
    /// Nothing arrives any more; a compiler that is at it is stopped.
    void cancel();
    [[nodiscard]] bool isBusy() const { return m_isBusy; }

signals:
    /// Something takes longer than reading a file.
    void progressed(int side, const QString &text);
    void arrived(int side, const klineage::ui::SideCode &code);
    void finished();

private:
    struct Workshop;

    JobSlot m_loading;
    std::shared_ptr<Workshop> m_workshop; ///< shared with the jobs
    bool m_isBusy = false;
};

} // namespace klineage::ui
