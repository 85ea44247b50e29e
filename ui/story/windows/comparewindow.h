// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/diffloader.h"

#include <QWidget>

class QLabel;
class QTableView;

namespace klineage::ui {

class DiffView;
class ProfileModel;
class WorkspaceModel;

/// A row of a lineage by its names.
struct RowName {
    QString lineage; ///< "gemm/sm90"
    QString row;     ///< "K05"
};

/// Two rows of any lineages, which the window's selection cannot hold together: the sources side by side, and both profiles. Figures of two
/// trials are not paired, and of two devices do not compare; it says so. A window of its own; who owns it gives it the keys.
class CompareWindow : public QWidget
{
    Q_OBJECT

public:
    explicit CompareWindow(WorkspaceModel *workspace);

    /// Shows them. Empty, or why it cannot.
    [[nodiscard]] QString compare(const RowName &left, const RowName &right);
    void nextChange();
    void previousChange();
    void swap();

    [[nodiscard]] const RowName &left() const { return m_left; }
    [[nodiscard]] const RowName &right() const { return m_right; }
    [[nodiscard]] DiffView *view() const { return m_view; }
    [[nodiscard]] ProfileModel *profile() const { return m_profile; }
    [[nodiscard]] QString note() const;

private:
    void showDocument(const DocumentPtr &document);

    WorkspaceModel *m_workspace;
    RowName m_left;
    RowName m_right;
    DiffLoader m_loader;
    QString m_wanted; ///< key of the document
    QLabel *m_leftName;
    QLabel *m_rightName;
    QLabel *m_note;
    DiffView *m_view;
    ProfileModel *m_profile;
    QTableView *m_table;
};

} // namespace klineage::ui
