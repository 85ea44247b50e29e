// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workspace/workspacereader.h"

#include <QObject>
#include <QString>

#include <functional>
#include <memory>

namespace klineage::ui {

/// The open workspace, shared by all panels. Lives on the GUI thread; reading happens on a worker thread and the result arrives
/// by loaded(). Panels hold no copies: they look things up by key again after each change signal.
class WorkspaceModel : public QObject
{
    Q_OBJECT

public:
    explicit WorkspaceModel(QObject *parent = nullptr);
    ~WorkspaceModel() override;

    /// Starts reading; a later call replaces an earlier one that has not arrived.
    void open(const QString &root);
    /// What open() reads waits from hold() to release(): the window is painted before it is filled.
    void hold();
    void release();
    /// As open(), but returns when it is done (for --screenshot and tests).
    void openNow(const QString &root);
    /// Takes a snapshot that was made elsewhere (tests).
    void setWorkspace(Workspace workspace);

    [[nodiscard]] bool isLoaded() const;
    /// Between open() and its result.
    [[nodiscard]] bool isReading() const;
    [[nodiscard]] const Workspace &workspace() const;
    [[nodiscard]] const lineage::Lineage *lineage(const QString &key) const;
    [[nodiscard]] const workload::Workload *workload(const QString &name) const;
    [[nodiscard]] const skills::CardRecord *card(const QString &name) const;

    /// After something was written: reads the lineages and cards whose files changed, and only those, on the worker thread, and then says
    /// which. What cannot be read emits failed() and leaves what is held. `then` is called last, on the GUI thread, also when there was
    /// nothing to read; not when the model dies before.
    void readChanges(std::function<void()> then = {});

signals:
    void reading();
    void loaded(); ///< also when a lineage or a card is no more
    void failed(const QString &message);
    void lineageChanged(const QString &key);
    void cardChanged(const QString &name);

private:
    struct Private;
    void take(Workspace workspace);
    void take(WorkspaceChanges changes);
    void endReading();
    std::unique_ptr<Private> m_d;
};

} // namespace klineage::ui
