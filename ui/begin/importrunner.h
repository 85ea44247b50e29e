// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QProcess>
#include <QStringList>

#include <vector>

namespace klineage::ui {

/// What became of one card, problem, file or folder.
struct ImportedEntry {
    QString source; ///< as seen from the folder that was imported
    QString name;   ///< of the card or workload here; empty: it was passed over
    QString reason; ///< why it was passed over
    QStringList notes;
};

struct ImportReport {
    std::vector<ImportedEntry> entries;
    int imported = 0;
};

/// The report that klineage-cli prints with --json; `problem` is a sentence when it is none. key: of the name in an entry, "card".
[[nodiscard]] ImportReport parseImportReport(const QByteArray &json, const char *key, QString *problem);

/// Imports by klineage-cli, so that the window and the command line do the same and say the same, and what a problem's Python does is done in
/// another process. One at a time. Lives on the GUI thread.
class ImportRunner : public QObject
{
    Q_OBJECT

public:
    enum class Kind { Problems, Cards };

    explicit ImportRunner(QObject *parent = nullptr);
    ~ImportRunner() override; ///< ends what is running

    /// arguments: what stands after "import".
    void start(Kind kind, const QString &workspace, const QStringList &arguments);
    void stop(); ///< what was imported so far stays
    [[nodiscard]] bool isRunning() const { return m_process.state() != QProcess::NotRunning; }

signals:
    /// problem: why there is no report, or not the whole one; empty: there is.
    void ended(const ImportReport &report, const QString &problem);

private:
    void finish(int exitCode, QProcess::ExitStatus status);

    QProcess m_process;
    Kind m_kind = Kind::Cards;
    bool m_isStopped = false;
};

} // namespace klineage::ui
