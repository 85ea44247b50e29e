// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QProcess>
#include <QStringList>

#include <vector>

namespace klineage::ui {

/// What became of one card, problem, archive, file or folder; or one row of the lineage that an archive became.
struct ImportedEntry {
    enum class Part { Whole, State, Attempt };
    QString source; ///< as seen from the folder that was imported
    QString name;   ///< of the card, workload, lineage or row here; empty: it was passed over
    QString reason; ///< why it was passed over
    QStringList notes;
    Part part = Part::Whole;
};

struct ImportReport {
    std::vector<ImportedEntry> entries; ///< rows of a lineage follow it
    int imported = 0;                   ///< of what is whole
    int states = 0;
    int attempts = 0;
    QStringList next; ///< commands that go on with what was imported

    [[nodiscard]] int skipped() const
    {
        return static_cast<int>(entries.size()) - imported - states - attempts;
    }
};

/// The report that klineage-cli prints with --json; `problem` is a sentence when it is none, that of an error where it is one. key: of the name
/// in an entry, "card".
[[nodiscard]] ImportReport parseImportReport(const QByteArray &json, const char *key, QString *problem);

/// The same of what "workload new" prints, whose one entry is of `source`.
[[nodiscard]] ImportReport parseOperatorReport(const QByteArray &json, const QString &source,
                                               QString *problem);

/// Imports by klineage-cli, so that the window and the command line do the same and say the same, and what a problem's Python does is done in
/// another process. One at a time. Lives on the GUI thread.
class ImportRunner : public QObject
{
    Q_OBJECT

public:
    enum class Kind { Problems, Cards, Archive, Operator };

    explicit ImportRunner(QObject *parent = nullptr);
    ~ImportRunner() override; ///< ends what is running

    /// arguments: what stands after "import", or after "new" of an operator, where the last one is its file. Of an archive their paths are absolute.
    void start(Kind kind, const QString &workspace, const QStringList &arguments);
    void stop(); ///< what was imported so far stays; a lineage is imported whole or not at all
    [[nodiscard]] bool isRunning() const { return m_process.state() != QProcess::NotRunning; }

signals:
    /// problem: why there is no report, or not the whole one; empty: there is.
    void ended(const ImportReport &report, const QString &problem);

private:
    void finish(int exitCode, QProcess::ExitStatus status);

    QProcess m_process;
    Kind m_kind = Kind::Cards;
    QString m_source; ///< of an operator
    bool m_isStopped = false;
};

} // namespace klineage::ui
